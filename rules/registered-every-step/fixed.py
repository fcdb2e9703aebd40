"""The optimizer gets its second group once."""

import torch
from torch import nn

model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(steps):
    scale = nn.Parameter(torch.ones(256))
    optimizer.add_param_group({"params": [scale]})
    for _step in range(steps):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train(200)
