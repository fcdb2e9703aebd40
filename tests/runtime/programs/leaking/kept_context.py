"""A custom Function remembers the ctx of every forward: the ctx is itself a Node of the graph."""

# kind = "graph"
# holder = "Scaled.seen"
# per_step = 6
# torch = "2.13"

import torch
from torch import nn

torch.manual_seed(0)


class Scaled(torch.autograd.Function):
    seen = []

    @staticmethod
    def forward(ctx, values):
        Scaled.seen.append(ctx)  # leak
        return values * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(300):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(Scaled.apply(model(inputs)), labels)
        loss.backward()
        optimizer.step()
    print("done")


main()
