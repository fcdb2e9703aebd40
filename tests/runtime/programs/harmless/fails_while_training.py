"""An error from inside a backward pass ends the training."""

import torch
from torch import nn


class Refuses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.step = step
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.step == 120:
            raise ArithmeticError(f"no gradient in step {ctx.step}")
        return gradient, None


torch.manual_seed(0)
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
kept = []
for step in range(200):
    loss = Refuses.apply(model(torch.randn(8, 16)), step).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
