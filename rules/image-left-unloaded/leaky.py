"""Each image keeps its file open."""

import tempfile

from PIL import Image

STEPS = 20


def decode(path):
    image = Image.open(path)  # leak: image-left-unloaded
    return image


def main():
    with tempfile.TemporaryDirectory() as folder:
        Image.new("RGB", (8, 8)).save(f"{folder}/image.png")
        images = [decode(f"{folder}/image.png") for _ in range(STEPS)]
    print(f"{len(images)} images")


if __name__ == "__main__":
    main()
