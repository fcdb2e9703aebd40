"""Two objects of one class, and two entries of one dictionary, each emptied in its own time.

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


class Batches:
    def __init__(self, every):
        self.items = []
        self.every = every
        self.seen = 0

    def add(self, item):
        self.items.append(item)
        self.seen += 1
        if self.seen % self.every == 0:
            self.items.clear()


torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
short, long = Window(5), Window(400)
often, rarely = Batches(10), Batches(300)
norms = {"short": [], "long": []}
for step in range(1200):
    loss = model(torch.randn(32, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for window in (short, long, often, rarely):
        window.add(model.weight.grad.clone())
    norms["short"].append(model.weight.grad.norm())
    norms["short"] = norms["short"][-5:]
    norms["long"].append(model.weight.grad.norm())
    norms["long"] = norms["long"][-300:]
