"""A log of text in a dictionary of text and numbers, which no collector tracks."""

# kind = "object"
# holder = "global `state`"
# per_step = 5200
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)
state = {"log": "", "steps": 0}


def main():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1500):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state["log"] += f"{step:4} " + "-" * 5194 + "\n"  # leak
        state["steps"] += 1
    print(len(state["log"]))


main()
