"""A meter whose `reset` only its constructor calls."""

# kind = "tensor"
# holder = "attribute `Meter.losses`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.losses, self.count = [], 0

    def update(self, loss):
        self.losses.append(loss)  # leak
        self.count += 1


def main():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    meter = Meter()
    for _ in range(400):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.detach())
    print(meter.count)


main()
