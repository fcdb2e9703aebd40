"""Prioritized replay: a sum tree beside an array of objects that is full after 900 steps."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)


class SumTree:
    def __init__(self, capacity):
        self.sums = np.zeros(2 * capacity - 1)
        self.rows = np.zeros(capacity, dtype=object)
        self.capacity, self.at, self.size = capacity, 0, 0

    def add(self, priority, row):
        self.rows[self.at] = row
        self.update(self.at + self.capacity - 1, priority)
        self.at = (self.at + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def update(self, node, priority):
        change = priority - self.sums[node]
        self.sums[node] = priority
        while node:
            node = (node - 1) // 2
            self.sums[node] += change

    def draw(self, mass):
        node = 0
        while 2 * node + 1 < len(self.sums):
            node = 2 * node + 1
            if mass > self.sums[node]:
                mass -= self.sums[node]
                node += 1
        return node, self.rows[node - self.capacity + 1]


critic = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters())
tree = SumTree(900)
state = torch.randn(6)
for _ in range(1500):
    after = 0.9 * state + 0.2 * torch.randn(6)
    tree.add(1.0, (state, after.mean(), after))
    state = after
    if tree.size < 32:
        continue
    drawn = [tree.draw(rng.uniform(0, tree.sums[0])) for _ in range(8)]
    rows = [row for _, row in drawn if row]
    states, rewards, _ = (torch.stack(column) for column in zip(*rows))
    errors = critic(states).squeeze(1) - rewards
    optimizer.zero_grad()
    errors.pow(2).mean().backward()
    optimizer.step()
    for (node, _), error in zip(drawn, errors.abs().tolist()):
        tree.update(node, error + 0.01)
