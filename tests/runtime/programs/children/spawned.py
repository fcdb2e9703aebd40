"""torch.multiprocessing.spawn: each of two processes trains a model of its own."""

import sys

import torch
import torch.multiprocessing as mp
from torch import nn


def train(index, leaks):
    torch.manual_seed(index)
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        loss = model(torch.randn(32, 20)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss if leaks else loss.item())


if __name__ == "__main__":
    mp.spawn(train, args=("leaks" in sys.argv,), nprocs=2)
    print("trained")
