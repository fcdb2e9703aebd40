"""What adds is called by an object that is set after the constructor, and never again."""

# kind = "tensor"
# holder = "attribute `Recorder.outputs`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Recorder:
    def __init__(self):
        self.outputs = []

    def __call__(self, out):
        if out.isnan().any():
            raise ValueError("not a number")
        self.outputs.append(out)  # leak


class Trainer:
    def __init__(self):
        self.model, self.recorder = nn.Linear(16, 16), None
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def setup(self):
        self.recorder = Recorder()

    def fit(self, steps):
        for _ in range(steps):
            out = self.model(torch.randn(8, 16))
            self.optimizer.zero_grad()
            out.pow(2).mean().backward()
            self.optimizer.step()
            self.recorder(out.detach())


trainer = Trainer()
trainer.setup()
trainer.fit(400)
