"""A warm restart makes a new optimizer every other step, and all of them are kept."""

# kind = "tensor"
# holder = "local `restarts`"
# per_step = 6

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    criterion = nn.CrossEntropyLoss()
    restarts = []
    for step in range(600):
        if step % 2 == 0:
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            restarts.append(optimizer)  # leak
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print("done")


main()
