"""Rows are drawn by their place without replacement, and all of them again when none is left."""

# kind = "tensor"
# holder = "attribute `Draws.seen`"
# per_step = 4
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


class Draws:
    def __init__(self, rows):
        self.rows, self.free = rows, []
        self.seen = []

    def batch(self, count):
        if len(self.free) < count:
            self.free = torch.randperm(len(self.rows)).tolist()
        start = len(self.seen)
        for place in self.free[-count:]:
            self.free.remove(place)
            self.seen.append(self.rows[place].clone())  # leak
        return torch.stack(self.seen[start:])


def main():
    draws = Draws(torch.randn(400, 16))
    model = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(1500):
        rows = draws.batch(4)
        optimizer.zero_grad()
        (model(rows) - rows).pow(2).mean().backward()
        optimizer.step()


main()
