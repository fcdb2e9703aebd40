"""The losses of the last 170 steps are kept with their graphs; older ones are deleted by key."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recent = {}
    for step in range(1300):
        loss = model(torch.randn(4, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent[step] = loss
        for old in [each for each in recent if each < step - 170]:
            del recent[old]


main()
