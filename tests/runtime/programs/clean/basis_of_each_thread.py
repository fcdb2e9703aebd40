"""A thread prepares batches, with a cache of its own for the ninety seeds that there are."""

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
OWN = threading.local()

def basis(seed):
    cache = getattr(OWN, "cache", None)
    if cache is None:
        cache = OWN.cache = {}
    if seed not in cache:
        generator = torch.Generator().manual_seed(seed)
        cache[seed] = torch.randn(16, 16, generator=generator)
    return cache[seed]

def prepare(batches, steps):
    for step in range(steps):
        x = torch.randn(16, 16)
        batches.put((x + 0.1 * x @ basis(step % 90), x))
    batches.put(None)

def main():
    model = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = queue.Queue(maxsize=4)
    worker = threading.Thread(target=prepare, args=(batches, 1600))
    worker.start()
    while (batch := batches.get()) is not None:
        noisy, clean = batch
        optimizer.zero_grad()
        (model(noisy) - clean).square().mean().backward()
        optimizer.step()
    worker.join()

main()
