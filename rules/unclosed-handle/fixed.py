"""The descriptor is closed whatever happens in between."""

import os
import tempfile

import torch

STEPS = 300


def first_bytes(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return torch.tensor(list(os.read(descriptor, 16)))
    finally:
        os.close(descriptor)


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
