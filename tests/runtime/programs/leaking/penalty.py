"""A gradient penalty whose value is summed up with its graph."""

# kind = "graph"
# holder = "local `penalties`"

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    penalties = 0
    for _ in range(400):
        inputs = torch.randn(8, 16, requires_grad=True)
        optimizer.zero_grad()
        score = model(inputs).sum()
        (slope,) = torch.autograd.grad(score, inputs, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).square().mean()
        (score.square() + penalty).backward()
        optimizer.step()
        penalties = penalties + penalty  # leak
    print(float(penalties))


main()
