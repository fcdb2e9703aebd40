"""A cache that is keyed by a tensor hashes its identity: no hit ever, and it keeps them all."""

from functools import cache

import torch

STEPS = 400


@cache  # leak: cached-tensor-argument
def norm(x: torch.Tensor) -> float:
    return float(x.square().sum().sqrt())


def main():
    total = 0.0
    for step in range(STEPS):
        total += norm(torch.ones(2048))
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
