"""A dictionary keeps what was computed for each sample: full after the first epoch of 250."""

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


class Features:
    def __init__(self):
        self.known = {}

    def of(self, i):
        f = self.known.get(i)
        if f is None:
            f = self.known[i] = np.full((64, 64), i, dtype=np.float32)
        return f


features = Features()
for epoch in range(5):
    for i in range(250):
        x, y = batch()
        x = x + torch.from_numpy(features.of(i)[:8])
        train(x, y)
