"""close() ends the archive, not the file that was opened for it."""

import io
import tarfile
import tempfile

import torch

STEPS = 50


class ShardWriter:
    def __init__(self, path):
        file = open(path, "wb")
        self.archive = tarfile.open(fileobj=file, mode="w")
        self.file = file  # leak: resource-left-by-owner

    def write(self, name, tensor):
        data = io.BytesIO()
        torch.save(tensor, data)
        info = tarfile.TarInfo(name)
        info.size = data.tell()
        data.seek(0)
        self.archive.addfile(info, data)

    def close(self):
        self.archive.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            writer = ShardWriter(f"{folder}/{step}.tar")
            writer.write("x", torch.zeros(16))
            writer.close()
    print("done")


if __name__ == "__main__":
    main()
