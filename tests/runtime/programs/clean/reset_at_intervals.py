"""Meters that a log interval, a countdown and a function that is handed them empty."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


def flush(rows):
    print(len(rows), torch.stack(rows).mean().item())
    rows.clear()


def main():
    model = nn.Linear(10, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    logs = {"loss": [], "norm": []}
    rows, episode, left = [], [], 300
    for step in range(1, 4001):
        loss = model(torch.randn(16, 10)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logs["loss"].append(loss.detach())
        logs["norm"].append(model.weight.grad.norm())
        rows.append(loss.detach())
        episode.append(model.weight.detach().mean())
        left -= 1
        if left == 0:
            episode, left = [], random.randint(200, 400)
        if step % 350 == 0:
            print(step, {name: torch.stack(kept).mean().item() for name, kept in logs.items()})
            logs = {"loss": [], "norm": []}
            flush(rows)


main()
