"""The state of a streaming evaluation is never detached; a list of numbers grows beside it."""

# kind = "graph"
# holder = "attribute `Tagger.state`"
# per_step = 4.8

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(16, 32), nn.Linear(32, 4)
        self.state = None

    def stream(self, x):
        self.state = self.cell(x, self.state)  # leak
        return self.head(self.state)


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(1, 701):
    loss = model.head(model.cell(torch.randn(8, 16))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 20 == 0:
        for _ in range(6):
            model.stream(torch.randn(8, 16))
