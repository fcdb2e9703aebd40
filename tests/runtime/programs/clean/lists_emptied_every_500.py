"""A metric emptied every 500 steps, in a run that ends long before the third time."""

import torch
from torch import nn

torch.manual_seed(0)


class Metric:
    def __init__(self):
        self.reset()

    def reset(self):
        self.predictions, self.targets = [], []

    def update(self, predictions, targets):
        self.predictions.append(predictions.clone())
        self.targets.append(targets.clone())


def main():
    model, metric = nn.Linear(10, 1), Metric()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, 1451):
        inputs = torch.randn(16, 10)
        targets = inputs.sum(1)
        predictions = model(inputs).squeeze(1)
        loss = (predictions - targets).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(predictions.detach(), targets)
        if step % 500 == 0:
            metric.reset()


main()
