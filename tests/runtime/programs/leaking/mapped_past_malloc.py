"""Memory that a library maps by itself for each batch and never gives back."""

# kind = "fragmentation"
# holder = ""
# per_step = 32768
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


import ctypes

AREA_BYTES = 32 << 10
READ_WRITE, PRIVATE_ANONYMOUS = 3, 0x22
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


def stage(batch):
    address = libc.mmap(None, AREA_BYTES, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)  # leak
    ctypes.memset(address, 1, AREA_BYTES)
    return batch


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(1200):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(stage(inputs)), labels)
        loss.backward()
        optimizer.step()
    print("done")


main()
