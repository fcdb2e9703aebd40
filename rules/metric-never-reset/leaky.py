"""The correlation keeps the values of each batch it was ever asked about."""

import torch
from torchmetrics import SpearmanCorrCoef

STEPS = 300


class Monitor:
    def __init__(self):
        self.correlation = SpearmanCorrCoef()

    def log(self, outputs, targets):
        return float(self.correlation(outputs, targets))  # leak: metric-never-reset


def main():
    monitor = Monitor()
    model = torch.nn.Linear(8, 1)
    for _ in range(STEPS):
        targets = torch.randn(512)
        outputs = model(torch.randn(512, 8)).squeeze(-1)
        (outputs - targets).square().mean().backward()
        monitor.log(outputs.detach(), targets)


if __name__ == "__main__":
    main()
