"""A generator starts the loader again and keeps nothing of the last pass."""

import torch
from torch.utils.data import DataLoader, TensorDataset

STEPS = 400


def forever(loader):
    while True:
        yield from loader


def main():
    loader = DataLoader(TensorDataset(torch.ones(4 * STEPS, 512)), batch_size=4)
    total = 0.0
    batches = forever(loader)
    for step in range(STEPS):
        (batch,) = next(batches)
        total += float(batch.sum())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
