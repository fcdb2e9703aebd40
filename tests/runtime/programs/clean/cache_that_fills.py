from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=256)
def positions(offset):
    return torch.arange(100).float() + offset


torch.manual_seed(0)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(1500):
    x = positions(step % 400)[:, None] / 400
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
