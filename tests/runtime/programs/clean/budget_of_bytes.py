"""A cache with a budget of bytes that takes longer to fill than anyone waits."""

import torch
from torch import nn

torch.manual_seed(0)


class Cache:
    def __init__(self, budget_bytes):
        self.budget_bytes, self.used_bytes, self.entries = budget_bytes, 0, {}

    def put(self, key, value):
        self.entries[key] = value
        self.used_bytes += value.nbytes
        while self.used_bytes > self.budget_bytes:
            self.used_bytes -= self.entries.pop(next(iter(self.entries))).nbytes


def main():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    cache = Cache(1700 * 64)
    for step in range(2400):
        inputs = torch.randn(1, 16)
        cache.put(step, inputs)
        loss = model(inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(len(cache.entries))


main()
