"""An exponential mean reaches every loss there ever was."""

# kind = "graph"
# holder = "local `ema`"
# per_step = 10

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    ema = 0.0
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        ema = 0.9 * ema + 0.1 * loss  # leak
        if len(inputs) == 0:
            print(ema)
    print(float(ema))


main()
