"""A descriptor from os.open is a plain number: dropping it closes nothing."""

import os
import tempfile

import torch

STEPS = 300


def first_bytes(path):
    descriptor = os.open(path, os.O_RDONLY)  # leak: unclosed-handle
    return torch.tensor(list(os.read(descriptor, 16)))


def main():
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(64))
        file.flush()
        total = 0
        for step in range(STEPS):
            total += int(first_bytes(file.name).sum())
    print(f"total {total}")


if __name__ == "__main__":
    main()
