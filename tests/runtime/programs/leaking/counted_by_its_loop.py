"""A trainer's loop asks for its own step, which is no limit of the list that it fills."""

# kind = "graph"
# holder = "attribute `Trainer.losses`, from local `self` in train()"
# per_step = 4

import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, most_steps):
        self.model = nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.most_steps = most_steps
        self.step = 0
        self.losses = []

    def train(self):
        while self.step < self.most_steps:
            loss = self.model(torch.randn(8, 8)).square().mean()
            self.losses.append(loss)  # leak
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1


Trainer(300).train()
