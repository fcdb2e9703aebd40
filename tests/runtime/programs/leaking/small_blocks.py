"""Small blocks from malloc that nobody frees: what malloc keeps at hand serves them first."""

# kind = "native"
# holder = ""
# per_step = 80
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(900):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        libc.malloc(64)  # leak
    print("done")


main()
