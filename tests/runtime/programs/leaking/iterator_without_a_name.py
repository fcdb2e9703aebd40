"""What grows is an attribute of an iterator that only the running loop knows."""

# kind = "tensor"
# holder = "attribute `Source.made`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Source:
    def __init__(self):
        self.made = []

    def __iter__(self):
        return self

    def __next__(self):
        self.made.append(torch.randn(8, 64))  # leak
        return self.made[-1]


def main():
    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step, x in enumerate(Source()):
        if step == 500:
            break
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()


main()
