"""Checkpoints that are all written into one file in memory: its buffer grows by an eighth."""

# kind = "object"
# holder = "global `checkpoints`"
# per_step = 2069
# unit = "B"

import io

import torch
from torch import nn

torch.manual_seed(0)
checkpoints = io.BytesIO()
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(2500):
    loss = model(torch.randn(16, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2 == 0:
        torch.save(model.state_dict(), checkpoints)  # leak
