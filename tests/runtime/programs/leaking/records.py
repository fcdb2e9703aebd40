"""Dictionaries of text in a list."""

# kind = "object"
# holder = "Run.events"

import torch
from torch import nn

torch.manual_seed(0)


class Run:
    def __init__(self):
        self.events = []


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    run = Run()
    for step in range(600):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        run.events.append({f"layer {i}": f"{step} of layer {i}" for i in range(20)})  # leak
    print(len(run.events))


main()
