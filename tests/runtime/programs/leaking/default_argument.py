"""A mutable default argument."""

# kind = "graph"
# holder = "default argument `seen`"
# per_step = 7

import torch
from torch import nn

torch.manual_seed(0)


def log(value, seen=[]):
    seen.append(value)  # leak
    return len(seen)


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
        count = log(loss)
    print(count)


main()
