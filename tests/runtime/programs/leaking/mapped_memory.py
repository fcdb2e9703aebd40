"""A shared area mapped for each batch and kept: small objects, much memory outside the heap."""

# kind = "object"
# holder = "staged"
# per_step = 65536
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


import mmap

AREA_BYTES = 64 << 10
staged = []


def stage(batch):
    area = mmap.mmap(-1, AREA_BYTES)
    area.write(bytes(AREA_BYTES))
    staged.append(area)  # leak
    return batch


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(900):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(stage(inputs)), labels)
        loss.backward()
        optimizer.step()
    print("done")


main()
