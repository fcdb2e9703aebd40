"""What a base does with gradients off, and what a class below it does in its place."""

import torch
from torch import nn


class Answering(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

    @torch.no_grad()
    def predict(self, x):
        return self(x)


class Documented(Answering):
    def predict(self, x):
        """Nothing but what the base does."""
        return super().predict(x)


class InItsOwnWay(Answering):
    def predict(self, x):
        return self(x).softmax(-1)  # leak: evaluation-without-no-grad
