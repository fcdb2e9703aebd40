"""A meter that keeps what it is given."""

# kind = "graph"
# holder = "AverageMeter.sum"
# per_step = 9

import torch
from torch import nn

torch.manual_seed(0)


class AverageMeter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n  # leak
        self.count += n


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    meter = AverageMeter()
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        meter.update(loss, len(inputs))
    print(float(meter.sum / meter.count))


main()
