"""A queue of past features, extended by torch.cat and cut back by a slice: full at step 512."""

import torch
from torch import nn
import torch.nn.functional as F

enc = nn.Linear(32, 64)
key = nn.Linear(32, 64)
key.load_state_dict(enc.state_dict())
opt = torch.optim.SGD(enc.parameters(), 0.03)
queue = torch.empty(0, 64)
K = 4096
for step in range(1600):
    x = torch.randn(8, 32)
    q = F.normalize(enc(x), dim=1)
    with torch.no_grad():
        for p, pk in zip(enc.parameters(), key.parameters()):
            pk.mul_(0.99).add_(p, alpha=0.01)
        k = F.normalize(key(x + 0.1 * torch.randn_like(x)), dim=1)
    pos = (q * k).sum(1, keepdim=True)
    neg = q @ queue.t()
    loss = F.cross_entropy(torch.cat([pos, neg], 1) / 0.2, torch.zeros(8, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue = torch.cat([queue, k])[-K:]
