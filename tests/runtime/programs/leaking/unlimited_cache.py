"""An lru_cache without a limit, asked for something new every time."""

# kind = "tensor"
# holder = "lru_cache of positions()"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


from functools import lru_cache


@lru_cache(maxsize=None)
def positions(length):
    return torch.arange(length)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for step in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        positions(step)  # leak
    print(positions.cache_info().currsize)


main()
