"""A meter with slots, two objects deep."""

# kind = "graph"
# holder = "Meter.total"
# per_step = 9

import torch
from torch import nn

torch.manual_seed(0)


class Meter:
    __slots__ = ("total",)

    def __init__(self):
        self.total = 0


class Trainer:
    def __init__(self):
        self.meters = {"loss": Meter()}

    def log(self, value):
        self.meters["loss"].total = self.meters["loss"].total + 2 * value  # leak


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    trainer = Trainer()
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        trainer.log(loss)
    print(float(trainer.meters["loss"].total))


main()
