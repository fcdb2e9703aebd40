"""A thread gives samples back to a pool when the last reference goes; the training keeps losses."""

import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, failed, missing = threading.Event(), [], []


class Slot:
    """A numbered place in a small pool, given back by `__del__`."""

    def __init__(self, pool):
        self.pool, self.number = pool, pool.pop()

    def __del__(self):
        self.pool.append(self.number)


def take_and_give():
    pool = list(range(8))
    try:
        while not stop.is_set():
            slots = [Slot(pool) for _ in range(8)]
            del slots
            if len(pool) != 8:
                missing.append(8 - len(pool))
                while len(pool) != 8 and not stop.wait(0.001):
                    pass
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=take_and_give)
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
thread.join()
print("missing", missing, "failed", failed, f"{losses[-1].item():.6g}")
