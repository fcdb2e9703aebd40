"""A loop of tensor arithmetic without a graph."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    value = torch.zeros(64)
    for _ in range(1500):
        value += torch.rand(64)
        value = value * 0.99
    print(value.shape[0])


main()
