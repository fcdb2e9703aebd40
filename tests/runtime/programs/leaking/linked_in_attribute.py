"""A linked list whose head is an attribute: the line that gives it its newest value leaks."""

# kind = "object"
# holder = "attribute `Runner.head`"
# per_step = 1
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


class State:
    def __init__(self, inputs, previous):
        self.inputs, self.previous = inputs, previous


class Runner:
    def __init__(self):
        self.head = None
        self.model = nn.Linear(64, 8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self):
        inputs = torch.randn(16, 64)
        loss = self.model(inputs).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.head = State(inputs.numpy().copy(), self.head)  # leak


runner = Runner()
for _ in range(600):
    runner.step()
