"""Two windows of one class, short and long, and two of one dictionary, each cut to its own length.

What cuts the short one runs at each step, and says nothing of the long one, which is not full yet.
"""

import torch
from torch import nn


class Window:
    def __init__(self, limit):
        self.items = []
        self.limit = limit

    def add(self, item):
        self.items.append(item)
        if len(self.items) > self.limit:
            self.items.pop(0)


torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
short, long = Window(5), Window(400)
norms = {"short": [], "long": []}
for step in range(1200):
    loss = model(torch.randn(32, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for window in (short, long):
        window.add(model.weight.grad.clone())
    norms["short"].append(model.weight.grad.norm())
    norms["short"] = norms["short"][-5:]
    norms["long"].append(model.weight.grad.norm())
    norms["long"] = norms["long"][-300:]
