"""The program listens to the collector, as profilers do, while threads make cycles; losses stay."""

import gc
import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, failed, wrong = threading.Event(), [], []
state = {"open": 0, "ended": 0}


def listen(phase, info):
    """Be told of each collection in turn: it begins, then it ends."""
    state["open"] += 1 if phase == "start" else -1
    state["ended"] += phase == "stop"
    if state["open"] not in (0, 1) or not 0 <= info["generation"] <= 2:
        wrong.append((phase, dict(info), dict(state)))


class Link:
    def __init__(self):
        self.me, self.pair = self, (self, [self])


def make_cycles():
    try:
        while not stop.is_set():
            for _ in range(150):
                Link()
            tuple(each for each in gc.get_stats())
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
gc.callbacks.append(listen)
gc.set_threshold(500, 8, 100)
threads = [threading.Thread(target=make_cycles) for _ in range(2)]
for thread in threads:
    thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(150):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
stop.set()
for thread in threads:
    thread.join()
gc.callbacks.remove(listen)
print("told", state["ended"] > 10, "open", state["open"], "wrong", wrong, "failed", failed)
print("threshold", gc.get_threshold(), "on", gc.isenabled(), f"{losses[-1].item():.6g}")
