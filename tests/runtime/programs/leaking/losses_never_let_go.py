"""Losses are to be let go of on a condition that never comes: the loss is a square."""

# kind = "graph"
# holder = "local `losses` in main()"
# per_step = 4
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(400):
        loss = model(torch.randn(4, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # leak
        if loss < 0:
            losses.clear()


main()
