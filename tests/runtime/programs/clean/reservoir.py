"""A sample of 220 past batches: filled first, then replaced at random."""

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


import random


class Reservoir:
    def __init__(self, k):
        self.k, self.n, self.items = k, 0, []

    def add(self, x):
        self.n += 1
        if self.n <= self.k:
            self.items.append(x)
        elif random.random() < self.k / self.n:
            self.items[random.randrange(self.k)] = x


r = Reservoir(220)
for step in range(1400):
    x, y = batch()
    r.add(x.clone())
    train(x, y)
