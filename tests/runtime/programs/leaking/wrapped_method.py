"""A method that is wrapped again at each step, each wrapper with the one before inside."""

# kind = "object"
# holder = "attribute `Linear.forward`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


def timed(function):
    spent = [0.0] * 200  # leak

    def wrapper(*arguments):  # leak
        spent[0] += 1.0
        return function(*arguments)

    return wrapper


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
        model[0].forward = timed(model[0].forward)  # leak
    print("done")


main()
