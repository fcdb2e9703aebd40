"""Threads are traced by the program itself; the training keeps its losses."""

import sys
import threading

import torch
from torch import nn

events, left, failed = [], [], []


def stepped(count):
    total = 0
    for number in range(count):
        total += number
    return total


def count_events(mine):
    def trace(frame, event, _):
        if frame.f_code is stepped.__code__:
            mine.append(event)
        return trace

    return trace


def work():
    mine = []
    tracer = count_events(mine)
    try:
        sys.settrace(tracer)
        stepped(30)
        left.append(sys.gettrace() is tracer)
        sys.settrace(None)
        left.append(sys.gettrace() is None)
    except BaseException as error:
        failed.append(repr(error))
    events.append((mine.count("call"), mine.count("line"), mine.count("return")))


def traced_from_outside():
    stepped(20)


torch.manual_seed(0)
outside = []
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(200):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    if step % 4 == 0:
        thread = threading.Thread(target=work)
        thread.start()
        threading.settrace(count_events(outside))
        other = threading.Thread(target=traced_from_outside)
        other.start()
        thread.join()
        other.join()
        threading.settrace(None)
print("threads", len(events), "counts", sorted(set(events)), "left", set(left), "failed", failed)
print("from outside", {name: outside.count(name) for name in ("call", "line", "return")})
