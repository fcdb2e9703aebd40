"""A thread collects garbage at times of its own and counts what dies; losses are kept."""

import gc
import threading
import weakref

import torch
from torch import nn

stop, failed, alive = threading.Event(), [], []


class Cache:
    def __init__(self):
        self.entries = {"self": self, "values": [1, 2, 3]}


def tidy():
    rounds = 0
    try:
        while not stop.wait(0.02) or rounds < 3:
            caches = [Cache() for _ in range(10)]
            deaths = []
            watchers = [weakref.ref(cache, deaths.append) for cache in caches]
            del caches
            for _ in range(50):  # another look at them may still be going on
                gc.collect()
                if len(deaths) == len(watchers):
                    break
                stop.wait(0.1)
            alive.append(len(watchers) - len(deaths))
            rounds += 1
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=tidy)
thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(200):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
stop.set()
thread.join()
print("alive", set(alive), "failed", failed, f"{losses[-1].item():.6g}")
