"""backward(create_graph=True) ties parameters and gradients in C++."""

# kind = "graph"
# holder = "outside Python"

import torch
from torch import nn

torch.manual_seed(0)


def main():
    for _ in range(300):
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
        loss = model(torch.randn(8, 16)).pow(2).mean()
        loss.backward(create_graph=True)  # leak
        norm = sum(parameter.grad.pow(2).sum() for parameter in model.parameters())
        norm.backward()


import warnings

warnings.simplefilter("ignore")
main()
