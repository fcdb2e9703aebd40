"""A thread keeps weak caches of samples, which die once let go; the training keeps its losses."""

import sys
import threading
import weakref

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, failed, counts = threading.Event(), [], set()


class Sample:
    def __init__(self, number):
        self.number, self.parts = number, [number] * 3


def cache():
    cached, seen, notes = weakref.WeakValueDictionary(), weakref.WeakSet(), weakref.WeakKeyDictionary()
    try:
        while not stop.is_set():
            alive = [Sample(number) for number in range(60)]
            for sample in alive:
                cached[sample.number] = sample
                seen.add(sample)
                notes[sample] = (sample.number,)
            total = sum(each.number for each in cached.values()) + len(seen) + len(notes)
            counts.add((len(cached), sum(note[0] for note in notes.values()), total))
            del alive[:20]
            del sample
            counts.add(all(number in cached for number in range(20, 60)))
            del alive
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=cache)
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
print("counts", sorted(counts, key=str), "failed", failed, f"{losses[-1].item():.6g}")
