"""A method may call itself: the class holds it, and it holds nothing."""

import torch
from torch import nn

STEPS = 100


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))

    def forward(self, x, depth):
        if depth == 0:
            return x
        return self(torch.tanh(x @ self.weight), depth - 1)


def main():
    for step in range(STEPS):
        out = Tree()(torch.randn(4, 16), 3)
    print(f"out {tuple(out.shape)}")


if __name__ == "__main__":
    main()
