"""A parameter gets another hook for each batch to scale its gradient, and none is removed."""

# kind = "object"
# holder = "_backward_hooks"
# per_step = 1
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        model[2].weight.register_hook(lambda gradient: 0.5 * gradient)  # leak
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print("done")


main()
