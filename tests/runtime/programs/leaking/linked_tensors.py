"""A linked list of tensors."""

# kind = "tensor"
# holder = "local `head`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Entry:
    def __init__(self, value, previous):
        self.value = value
        self.previous = previous


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    head = None
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        head = Entry(torch.zeros(64), head)  # leak
    print(head.value.sum().item())


main()
