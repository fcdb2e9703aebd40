"""Threads build sets, strings, dictionaries and tuples from generators; losses are kept."""

import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, failed, found = threading.Event(), [], [set(), set(), set(), set()]


def words(count):
    for number in range(count):
        yield f"w{number}"


def sets():
    return len(frozenset(words(120)) | {*words(60)}), len(frozenset(frozenset((w,)) for w in words(9)))


def strings():
    return "".join(words(90)) == ",".join(words(90)).replace(",", ""), len("-".join(words(50)))


def tables():
    table = dict(zip(words(80), range(80), strict=True))
    table.update((word, [word]) for word in words(40))
    return len(table), sum(isinstance(value, list) for value in table.values()), len({**table, "x": 1})


def tuples():
    whole = tuple(words(150))
    doubled = tuple((*whole, *whole[:5]))
    head, *tail = sorted(doubled)
    return head, len(tail), len(tuple(filter(None, map(len, doubled)))), max(*whole)


def repeat(make, into):
    try:
        while not stop.is_set():
            into.add(make())
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
makers = (sets, strings, tables, tuples)
threads = [threading.Thread(target=repeat, args=each) for each in zip(makers, found, strict=True)]
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
print("found", [sorted(each) for each in found], "failed", failed, f"{losses[-1].item():.6g}")
