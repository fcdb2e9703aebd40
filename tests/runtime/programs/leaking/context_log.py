"""Spans that a context variable keeps in ever longer tuples, each with the number of its loss."""

# kind = "tensor"
# holder = "context variable `spans`"
# per_step = 1

import contextvars

import torch
from torch import nn

torch.manual_seed(0)
SPANS = contextvars.ContextVar("spans", default=())


def note(name, **fields):
    SPANS.set((*SPANS.get(), {"name": name, **fields}))  # leak


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(400):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        note("step", loss=loss.detach())


main()
