"""Near misses are unmarked."""

from PIL import Image


class Kept:
    def set_file(self, path):
        self.image = Image.open(path)  # leak: image-left-unloaded
        self.size = self.image.size

    def set_pixels(self, path):
        self.image = Image.open(path)
        self.image.load()


def in_memory(buffer):
    image = Image.open(buffer)
    return image


def converted(path):
    return Image.open(path).convert("RGB")


def local(path):
    image = Image.open(path)
    return image.size


class Handed:
    def set_file(self, path):
        self.image = Image.open(path)
        return self.pipeline(self.image)

    def keep_file(self, path):
        self.image = Image.open(path)  # leak: image-left-unloaded
        self.images.append(self.image)
