"""Batches of 280 shapes, for each of which the library that multiplies keeps something."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 100))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(700):
        count, length = 2 + step % 7, 8 + (step * 13) % 40
        inputs = torch.randn(count, length, 48)
        loss = model(inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item() > 0)


main()
