"""One memory map for the whole run: each page that was ever read stays resident."""

import os
import tempfile

import numpy as np
import torch

STEPS = 400
BLOCK = 1024


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.bin")
        np.zeros(STEPS * 4 * BLOCK, dtype=np.uint16).tofile(path)
        tokens = np.memmap(path, dtype=np.uint16, mode="r")  # leak: random-access-memmap
        total = 0
        for step in range(STEPS):
            start = int(torch.randint(len(tokens) - BLOCK, (1,)))
            total += int(tokens[start : start + BLOCK].sum())
        print(f"total {total}")
        del tokens


if __name__ == "__main__":
    main()
