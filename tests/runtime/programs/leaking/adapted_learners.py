"""Meta-learning: a copy is adapted by a few steps of its own optimizer, and each is kept."""

# kind = "tensor"
# holder = "local `adapted` in main()"
# per_step = 4
# unit = ""

import copy

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Linear(16, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    adapted = []
    for _ in range(120):
        learner = copy.deepcopy(model)
        inner = torch.optim.SGD(learner.parameters(), lr=0.01)
        for _ in range(5):
            inner.zero_grad()
            learner(torch.randn(8, 16)).pow(2).mean().backward()
            inner.step()
        adapted.append(learner)  # leak
        optimizer.zero_grad()
        model(torch.randn(8, 16)).pow(2).mean().backward()
        optimizer.step()
    print(len(adapted))


main()
