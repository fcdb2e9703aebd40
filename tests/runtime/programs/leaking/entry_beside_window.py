"""Beside a window in a dictionary, which is cut and cleared, another entry of it is not."""

# kind = "tensor"
# holder = "attribute `History.state`"
# per_step = 1

import torch
from torch import nn


class History:
    def __init__(self):
        self.state = {"window": [], "trace": []}

    def add(self, gradient):
        entries = self.state
        entries["window"].append(gradient)
        if len(entries["window"]) > 5:
            entries["window"].pop(0)
        entries["trace"].append(gradient)  # leak

    def end(self, name):
        if name == "window":
            self.state[name].clear()


torch.manual_seed(0)
model, history = nn.Linear(16, 8), History()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(400):
    loss = model(torch.randn(32, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.add(model.weight.grad.clone())
    if step % 50 == 49:
        history.end("window")
