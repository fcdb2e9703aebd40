"""The newest line of a log in a dictionary of text and numbers, which no collector tracks."""

import torch
from torch import nn

torch.manual_seed(0)
state = {"newest": "", "steps": 0}


def main():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(600):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state["newest"] = f"{step:4} " + "-" * (4000 + step % 7 * 500) + "\n"
        state["steps"] += 1
    print(len(state["newest"]))


main()
