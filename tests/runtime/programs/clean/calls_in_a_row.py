"""One function trains for a while, and is called again and again: each call has a list of losses."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(20, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(steps):
    losses = []
    for _ in range(steps):
        loss = model(torch.randn(16, 20)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


print(train(300))
print(train(300))
print(train(400))
print(train(400), train(200))
print(train(400))
