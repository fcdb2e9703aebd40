"""Each step opens a file where the one before still is."""

import tempfile

import torch

STEPS = 20


class Log:
    def __init__(self, folder):
        self.folder = folder
        self.file = None

    def write(self, step, values):
        self.file = open(f"{self.folder}/{step}.pt", "wb")  # leak: overwritten-while-open
        torch.save(values, self.file)

    def close(self):
        self.file.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        log = Log(folder)
        for step in range(STEPS):
            log.write(step, torch.zeros(4))
        log.close()
    print("done")


if __name__ == "__main__":
    main()
