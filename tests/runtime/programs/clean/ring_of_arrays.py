"""Actions are kept as arrays made of tensors, in a list that is written round and round."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Ring:
    def __init__(self, size):
        self.size, self.rows, self.at = size, [], 0

    def put(self, *row):
        if len(self.rows) < self.size:
            self.rows.append(None)
        self.rows[self.at] = row
        self.at = (self.at + 1) % self.size


policy = nn.Linear(8, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
ring = Ring(400)
for step in range(1500):
    state = torch.randn(8)
    with torch.no_grad():
        action = policy(state).tanh().numpy()
    ring.put(action, step)
    wanted = torch.from_numpy(random.choice(ring.rows)[0])
    loss = (policy(state) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
