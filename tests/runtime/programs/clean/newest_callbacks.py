"""A function is made for each step, with values in its closure; the last sixteen are kept."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
callbacks = {}


def reporting(step, values):
    def report():
        return step, values

    return report


for step in range(600):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    callbacks[step % 16] = reporting(step, [loss.item() + i for i in range(100)])
print("trained")
