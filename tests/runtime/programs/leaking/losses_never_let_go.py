"""Losses are to be let go of by a clock that never comes to it."""

# kind = "graph"
# holder = "local `losses` in main()"
# per_step = 4
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


class Clock:
    """Says every so often that it is time."""

    def __init__(self, every):
        self.every, self.count = every, 0

    def is_due(self):
        self.count += 1
        if self.count < self.every:
            return False
        self.count = 0
        return True


def main():
    model = nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clock, losses = Clock(10**6), []
    for _ in range(400):
        loss = model(torch.randn(4, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # leak
        if clock.is_due():
            losses.clear()


main()
