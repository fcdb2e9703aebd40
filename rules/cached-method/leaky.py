"""lru_cache on a method keeps every instance it was ever called on."""

import functools

import torch

STEPS = 400


class Batch:
    def __init__(self, size):
        self.inputs = torch.ones(size)

    @functools.lru_cache(maxsize=None)  # leak: cached-method
    def total(self):
        return float(self.inputs.sum())


def main():
    total = 0.0
    for step in range(STEPS):
        batch = Batch(2048)
        total += batch.total() + batch.total()
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
