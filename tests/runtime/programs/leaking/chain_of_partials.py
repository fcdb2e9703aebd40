"""Work is put off by a partial that is handed the one before: none of them is ever called."""

# kind = "tensor"
# holder = "attribute `Later.work`"
# per_step = 1

import functools

import torch
from torch import nn

torch.manual_seed(0)


def summed(before, inputs, scale):
    return scale * inputs.sum() + (before() if before else 0)


class Later:
    def __init__(self):
        self.work = None

    def add(self, inputs):
        self.work = functools.partial(summed, self.work, inputs, scale=0.5)  # leak


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    later = Later()
    for _ in range(500):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        later.add(inputs)


main()
