"""Spans that a context variable keeps in ever longer tuples, each with its loss."""

# kind = "graph"
# holder = "context variable `spans`"
# per_step = 7

import contextvars

import torch
from torch import nn

torch.manual_seed(0)
SPANS = contextvars.ContextVar("spans", default=())


class Span:
    def __init__(self, name):
        self.attributes = {"name": name}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        SPANS.set((*SPANS.get(), self))


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(400):
        with Span("step") as span:
            loss = model(torch.randn(8, 16)).pow(2).mean()  # leak
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            span.attributes["loss"] = loss
    print("done")


main()
