import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        self.callbacks = [lambda trainer: trainer.loss.item()]

    def run(self, steps):
        for self.step in range(steps):
            self.loss = self.model(torch.randn(8, 8)).pow(2).mean()
            self.model.zero_grad(set_to_none=True)
            self.loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback(self)


torch.manual_seed(0)
Trainer().run(1200)
