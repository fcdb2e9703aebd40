"""A metric of a step's values puts all it had before aside as copies, and adds the new to them.

No tensor of it is older than a step: as metrics of torchmetrics do that are called for their value.
"""

# kind = "tensor"
# holder = "attribute `Correlation.values`, from global `correlation`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.01)


class Correlation:
    def __init__(self):
        self.values = []

    def __call__(self, values):
        before = [each.clone() for each in self.values]
        self.values = [values]
        of_this_step = self.compute()
        self.values = [*before, values]  # leak
        return of_this_step

    def compute(self):
        return torch.cat(self.values).std().item()


correlation = Correlation()


def main():
    for _ in range(500):
        output = net(torch.randn(16, 16)).squeeze(-1)
        loss = output.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correlation(output.detach())
    print("done", len(correlation.values))


main()
