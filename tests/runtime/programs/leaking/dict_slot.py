"""The total sits in a dictionary."""

# kind = "graph"
# holder = "local `stats`"
# per_step = 8

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    stats = {"loss": 0.0, "steps": 0}
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        stats["loss"] = stats["loss"] + loss  # leak
        stats["steps"] += 1
    print(float(stats["loss"]))


main()
