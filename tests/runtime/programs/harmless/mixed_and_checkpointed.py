"""Autocast in bfloat16 around blocks that are recomputed, both ways, with dropout."""

import hashlib

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.2), nn.ReLU())
second = nn.Sequential(nn.Linear(32, 32), nn.Dropout(0.2), nn.ReLU())
head = nn.Linear(32, 4)
parameters = [*first.parameters(), *second.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
kept = []
for _ in range(150):
    inputs = torch.randn(8, 16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = checkpoint(first, inputs, use_reentrant=True)
        hidden = checkpoint(second, hidden, use_reentrant=False)
        loss = head(hidden).float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    kept.append(loss)
weights = b"".join(each.detach().numpy().tobytes() for each in parameters)
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
