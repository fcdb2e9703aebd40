"""A custom function stores its output on ctx: cyclic garbage, not a leak."""

# notice = "cyclic-garbage"

import torch
from torch import nn

torch.manual_seed(0)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x * x
        return ctx.y

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.y.sqrt()


def main():
    layer = nn.Linear(64, 256)
    for _ in range(600):
        loss = Square.apply(layer(torch.randn(32, 64))).mean()
        layer.zero_grad()
        loss.backward()
    print("done")


main()
