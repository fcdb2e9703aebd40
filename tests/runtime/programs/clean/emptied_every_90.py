"""Losses without their graph, collected until every ninetieth step prints their mean."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
recent = []
for step in range(1200):
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss.detach())
    if step % 90 == 89:
        print(step, torch.stack(recent).mean().item())
        recent = []
