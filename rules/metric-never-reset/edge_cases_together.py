"""Metrics that are reset with all other parts of a model."""

import torchmetrics
from torch import nn


class ResetTogether(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = torchmetrics.AveragePrecision(task="binary")

    def step(self, x, y):
        return self.score(x, y)

    def reset_all(self):
        for part in self.children():
            part.reset()
