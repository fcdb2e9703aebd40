"""Timers that start the next one save checkpoints while a training runs that keeps its losses."""

import io
import threading

import torch
from torch import nn

TIMES = 40
failed, saved = [], []
lock, last = threading.Lock(), threading.Event()


def save(model, left):
    try:
        with lock:
            target = io.BytesIO()
            torch.save(model.state_dict(), target)
            target.seek(0)
            saved.append(tuple(torch.load(target)["weight"].shape))
    except BaseException as error:
        failed.append(repr(error))
    if left:
        timer = threading.Timer(0.004, save, (model, left - 1))
        timer.start()
    else:
        last.set()


torch.manual_seed(0)
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
threading.Timer(0.01, save, (model, TIMES - 1)).start()
cancelled = threading.Timer(60, failed.append, ("never",))
cancelled.start()
losses = []
for _ in range(300):
    with lock:
        loss = model(torch.randn(8, 10)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(loss)
cancelled.cancel()
cancelled.join()
last.wait(60)
print("saved", len(saved), set(saved), "failed", failed, f"{losses[-1].item():.6g}")
