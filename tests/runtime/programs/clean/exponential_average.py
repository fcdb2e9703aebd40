import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 16)
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
running, total = 0.0, 0
for step in range(1200):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = 0.99 * running + 0.01 * loss.detach()
    total += loss.detach()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.mul_(0.99).add_(fast, alpha=0.01)
