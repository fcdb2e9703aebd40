"""Each step makes a longer list of the last one."""

# kind = "graph"
# holder = "attribute `Trainer.losses`"
# per_step = 4

import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self):
        self.model, self.losses = nn.Linear(16, 1), []
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def fit(self, steps):
        for _ in range(steps):
            loss = self.model(torch.randn(8, 16)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses = self.losses + [loss]  # leak


Trainer().fit(400)
