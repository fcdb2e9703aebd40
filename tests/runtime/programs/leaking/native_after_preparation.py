"""Memory that nobody frees, beside a log, after a loop that prepares documents of any length."""

# kind = "native"
# holder = ""
# per_step = 8208
# unit = "B"

import ctypes
import random

import torch
from torch import nn

torch.manual_seed(0)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]


def documents(count):
    source = random.Random(0)
    gathered = []
    for _ in range(count):
        length = source.randrange(4, 40)
        gathered.append([source.randrange(100) for _ in range(length)])
    return gathered


def encoded(document):
    libc.malloc(8192)  # leak
    return torch.tensor([document[i % len(document)] for i in range(24)])


def main():
    texts = documents(2000)
    embedding, head = nn.Embedding(100, 16), nn.Linear(16, 4)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.01)
    history = []
    for step in range(2200):
        loss = head(embedding(encoded(texts[step % 2000])).mean(0)).logsumexp(0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append({"step": step, "loss": loss.item()})
    print("done")


main()
