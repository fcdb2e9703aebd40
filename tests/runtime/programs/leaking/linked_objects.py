"""A linked list of plain objects."""

# kind = "object"
# holder = "local `head`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Event:
    def __init__(self, step, previous):
        self.text = "x" * (1500 + step % 3)
        self.previous = previous


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    head = None
    for step in range(600):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        head = Event(step, head)  # leak
    print(head.text[:1])


main()
