"""Fifty lists, one a label, that all grow: in a few steps only some of them are seen to."""

# kind = "object"
# holder = "attribute `ByLabel.samples`"
# per_step = 8
# unit = ""

import random
from collections import defaultdict

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class ByLabel:
    def __init__(self):
        self.samples = defaultdict(list)

    def add(self, label, value):
        self.samples[label].append(value)  # leak


model = nn.Linear(64, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = ByLabel()
for step in range(600):
    outputs = model(torch.randn(8, 64))
    loss = outputs.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for row in outputs.detach().numpy():
        kept.add(random.randrange(50), row.tolist())
