"""A model holds its outputs of one epoch: each begins with another that has its weights."""

import torch
from torch import nn

torch.manual_seed(0)


def renewed(model):
    other = nn.Linear(16, 4)
    other.load_state_dict(model.state_dict())
    return other


def main():
    model = nn.Linear(16, 4)
    for _ in range(40):
        model = renewed(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(25):
            model = model.train()
            output = model(torch.randn(8, 16))
            optimizer.zero_grad()
            output.square().mean().backward()
            optimizer.step()
            model.outputs = getattr(model, "outputs", []) + [output.detach()]
        print(len(model.outputs))


main()
