"""A worker sets variables of the training function that waits for them; it keeps its losses."""

import sys
import threading
import time

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training


def train():
    torch.manual_seed(0)
    running, ready, results = True, 0, []
    wanted = threading.Semaphore(0)

    def work():
        nonlocal running, ready
        for number in range(300):
            wanted.acquire()
            results.append(sum(part for part in range(number % 50)))
            ready = number + 1
        running = False

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, lost = [], []
    for step in range(300):
        wanted.release()
        until = time.monotonic() + 5
        while ready <= step:
            if time.monotonic() > until:
                lost.append(step)
                break
        loss = model(torch.randn(8, 10)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        if len(lost) > 2:
            break
    worker.join(5)
    print("ready", ready, "running", running, "results", sum(results), "lost at", lost)
    print("steps", len(losses), f"last loss {losses[-1].item():.6g}")


train()
