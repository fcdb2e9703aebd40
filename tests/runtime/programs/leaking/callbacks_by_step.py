"""A function is made for each step, with what it is to say in its closure, and all are kept."""

# kind = "object"
# holder = "global `callbacks`"
# per_step = 1
# unit = ""

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
    callbacks[step] = reporting(step, [loss.item() + i for i in range(100)])  # leak
print("trained")
