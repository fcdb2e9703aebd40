"""A forward hook keeps outputs in a list of the enclosing function."""

# kind = "graph"
# holder = "`features`"
# per_step = 3

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    features = []

    def keep(module, inputs, output):
        features.append(output)  # leak

    model[1].register_forward_hook(keep)
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(len(features))


main()
