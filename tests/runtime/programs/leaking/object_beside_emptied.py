"""Of two objects of one class one is emptied at each step, and the other never."""

# kind = "tensor"
# holder = "attribute `Batches.items`, from global `kept`"
# per_step = 1

import torch
from torch import nn


class Batches:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)  # leak

    def empty(self):
        self.items.clear()


torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
kept, emptied = Batches(), Batches()
for _ in range(1200):
    loss = model(torch.randn(32, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for batches in (kept, emptied):
        batches.add(model.weight.grad.clone())
    emptied.empty()
