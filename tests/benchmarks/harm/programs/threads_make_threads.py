"""Threads start threads, which start more, and all end; the training keeps its losses."""

import threading

import torch
from torch import nn

stop, failed, sums = threading.Event(), [], set()


def sum_of(numbers, answers, place):
    try:
        if len(numbers) < 3:
            answers[place] = sum(numbers)
            return
        half, parts = len(numbers) // 2, [None, None]
        halves = (tuple(numbers[:half]), tuple(numbers[half:]))
        threads = [
            threading.Thread(target=sum_of, args=(part, parts, n)) for n, part in enumerate(halves)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers[place] = sum(parts)
    except BaseException as error:
        failed.append(repr(error))


def repeat():
    while not stop.is_set():
        answers = [None]
        sum_of(tuple(n * n for n in range(12)), answers, 0)
        sums.add(answers[0])


torch.manual_seed(0)
before = threading.active_count()
main = threading.Thread(target=repeat)
main.start()
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
main.join()
left = threading.active_count() - before
print("sums", sums, "left", left, "failed", failed, f"{losses[-1].item():.6g}")
