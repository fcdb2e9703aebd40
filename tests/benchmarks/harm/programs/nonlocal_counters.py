"""Counters of the training function are changed by workers under a lock; losses are kept."""

import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training


def train():
    torch.manual_seed(0)
    done = asked = 0
    newest = None
    lock, stop = threading.Lock(), threading.Event()
    made = [0, 0]

    def work(number):
        nonlocal done, newest
        while not stop.is_set():
            with lock:
                done += 1
                made[number] += 1
                newest = (number, done)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, backwards, before = [], 0, 0
    for _ in range(150):
        with lock:
            backwards += done < before
            before = done
            asked += 1
        loss = model(torch.randn(8, 10)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    stop.set()
    for worker in workers:
        worker.join()
    print("asked", asked, "backwards", backwards, "all counted", done == sum(made))
    print("newest", newest is not None and newest[1] == done, f"loss {losses[-1].item():.6g}")


train()
