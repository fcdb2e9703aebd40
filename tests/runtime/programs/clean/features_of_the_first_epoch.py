"""The batches of the first epoch are kept in a list and used in every other."""

import torch, numpy as np
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()


def train(x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def batch(n=8):
    return torch.randn(n, 64), torch.randint(0, 4, (n,))


kept = []
for epoch in range(6):
    for i in range(220):
        if epoch == 0:
            kept.append(batch())
        train(*kept[i])
