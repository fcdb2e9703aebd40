"""The map is made anew for every batch, so the pages of the last one can go."""

import os
import tempfile

import numpy as np
import torch

STEPS = 400
BLOCK = 1024


def block(path):
    tokens = np.memmap(path, dtype=np.uint16, mode="r")
    start = int(torch.randint(len(tokens) - BLOCK, (1,)))
    return tokens[start : start + BLOCK].astype(np.int64)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.bin")
        np.zeros(STEPS * 4 * BLOCK, dtype=np.uint16).tofile(path)
        total = 0
        for step in range(STEPS):
            total += int(block(path).sum())
        print(f"total {total}")


if __name__ == "__main__":
    main()
