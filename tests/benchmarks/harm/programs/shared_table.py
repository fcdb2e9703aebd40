"""One thread changes a shared table that another goes through, both under a lock; losses stay."""

import collections
import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

lock, stop, failed, found = threading.Lock(), threading.Event(), [], set()
table: dict = {}
order: collections.OrderedDict = collections.OrderedDict()


def change():
    number = 0
    try:
        while not stop.is_set():
            with lock:
                for _ in range(50):
                    table[number] = [number]
                    order[number] = None
                    number += 1
                while len(table) > 400:
                    del table[min(table)]
                    order.popitem(last=False)
    except BaseException as error:
        failed.append(repr(error))


def read():
    try:
        while not stop.is_set():
            with lock:
                keys = tuple(key for key in table)
                whole = list(keys) == list(order) == [value[0] for value in table.values()]
                found.add((whole, len(keys) <= 400, not keys or keys[-1] - keys[0] < 400))
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
threads = [threading.Thread(target=change), threading.Thread(target=read)]
for thread in threads:
    thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(300):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
stop.set()
for thread in threads:
    thread.join()
print("found", found, "failed", failed, f"{losses[-1].item():.6g}")
