"""itertools.cycle keeps a copy of every batch of the first pass."""

import itertools

import torch
from torch.utils.data import DataLoader, TensorDataset

STEPS = 400


def main():
    loader = DataLoader(TensorDataset(torch.ones(4 * STEPS, 512)), batch_size=4)
    total = 0.0
    batches = itertools.cycle(loader)  # leak: cycled-loader
    for step in range(STEPS):
        (batch,) = next(batches)
        total += float(batch.sum())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
