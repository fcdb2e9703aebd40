"""requires_grad_() is called in one place, the arithmetic is in another."""

# kind = "graph"
# holder = "local `val`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


def make():
    return torch.zeros(1).requires_grad_() * 1


def main():
    val = make()
    steps = 0
    while steps < 600:
        val += 1  # leak
        steps += 1
    print(float(val))


main()
