"""A list that belongs to the class."""

# kind = "graph"
# holder = "Logger.history"
# per_step = 7

import torch
from torch import nn

torch.manual_seed(0)


class Logger:
    history = []

    def log(self, value):
        self.history.append(value)  # leak


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        Logger().log(loss)
    print(len(Logger.history))


main()
