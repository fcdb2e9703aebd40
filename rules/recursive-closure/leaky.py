"""The nested function calls itself, and so holds itself, and self with its tensors."""

import torch
from torch import nn

STEPS = 100


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))

    def forward(self, x, depth):
        def walk(x, depth):  # leak: recursive-closure
            return x if depth == 0 else walk(torch.tanh(x @ self.weight), depth - 1)

        return walk(x, depth)


def main():
    for step in range(STEPS):
        out = Tree()(torch.randn(4, 16), 3)
    print(f"out {tuple(out.shape)}")


if __name__ == "__main__":
    main()
