"""A thread reads batches ahead into a queue; the training keeps its losses."""

import queue
import random
import threading

import torch
from torch import nn

STEPS = 300
batches: queue.Queue = queue.Queue(maxsize=8)
failed = []


def read_ahead():
    rng = random.Random(0)
    try:
        for _ in range(STEPS):
            rows = tuple([rng.random() for _ in range(10)] for _ in range(128))
            labels = tuple(rng.randrange(2) for _ in range(128))
            batches.put((torch.tensor(rows), torch.tensor(labels)))
    except BaseException as error:
        failed.append(repr(error))
    finally:
        batches.put(None)


torch.manual_seed(0)
reader = threading.Thread(target=read_ahead, name="reader")
reader.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
while (batch := batches.get()) is not None:
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
reader.join()
print("batches", len(losses), "failed", failed, f"last loss {losses[-1].item():.6g}")
