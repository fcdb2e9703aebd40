"""Two threads take turns at one generator under a lock; the training keeps its losses."""

import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training


def numbers():
    total = 0
    for number in range(10**9):
        total += number
        last = total % 13
        yield number, last


class Shared:
    """An iterator that several threads may ask."""

    def __init__(self, source):
        self.source, self.lock = source, threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            return next(self.source)


def take(shared, taken, stop, failed):
    try:
        while not stop.is_set():
            taken.append(next(shared))
            tuple(value for value in taken[-50:])
    except BaseException as error:
        failed.append(repr(error))


def main():
    torch.manual_seed(0)
    shared, stop, failed, theirs, mine = Shared(numbers()), threading.Event(), [], [], []
    thread = threading.Thread(target=take, args=(shared, theirs, stop, failed))
    thread.start()
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(300):
        mine += [next(shared) for _ in range(4)]
        loss = model(torch.randn(8, 10)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    stop.set()
    thread.join()
    taken = sorted(theirs + mine)
    whole = [number for number, _ in taken] == list(range(len(taken)))
    right = all(last == number * (number + 1) // 2 % 13 for number, last in taken)
    print("mine", len(mine), "each once", whole, "right", right, "failed", failed)
    print(f"last loss {losses[-1].item():.6g}")


main()
