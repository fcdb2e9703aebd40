"""A method of each step's window is registered with atexit, which keeps the window."""

# kind = "tensor"
# holder = "atexit"
# per_step = 1

import atexit

import torch
from torch import nn

torch.manual_seed(0)


class Window:
    def __init__(self):
        self.rows = torch.zeros(20, 50)
        self.length = 0
        atexit.register(self.flush)  # leak

    def add(self, row):
        self.rows[self.length % 20] = row
        self.length += 1

    def flush(self):
        self.length = 0


def main():
    model = nn.Linear(50, 50)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(900):
        window = Window()
        rows = torch.randn(8, 50)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.add(rows[0])


main()
