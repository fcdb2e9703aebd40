"""An in-place sum of random leaves: no optimizer, no module."""

# kind = "graph"
# holder = "local `val`"
# per_step = 2

import torch
from torch import nn

torch.manual_seed(0)


def main():
    val = torch.zeros(1)
    for _ in range(600):
        val += torch.rand(1).requires_grad_()  # leak
    print(float(val))


main()
