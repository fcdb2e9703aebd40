"""The newest outputs of three validations, each after an epoch of three hundred steps."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(12):
        for _ in range(300):
            data = torch.randn(8, 64)
            loss = (model(data) - data).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            outputs = torch.cat([model(torch.randn(400, 64)) for _ in range(10)])
        kept = [*kept, outputs][-3:]
        print(len(kept), round(sum(each.mean().item() for each in kept), 4))


main()
