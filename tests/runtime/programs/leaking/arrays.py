"""Arrays and bytes: nothing of torch's."""

# kind = "object"
# holder = "local `log`"
# per_step = 6300
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


import numpy as np


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    log = []
    for _ in range(600):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        log.append((np.random.rand(512), bytes(bytearray(2048))))  # leak
    print(len(log))


main()
