"""One thread decodes, another puts batches together; the training keeps its outputs."""

import queue
import threading

import torch
from torch import nn

STEPS = 300
decoded: queue.Queue = queue.Queue(maxsize=16)
ready: queue.Queue = queue.Queue(maxsize=4)
failed = []


def fields(number):
    for i in range(60):
        yield (number + i) % 7 / 7


def decode():
    try:
        for number in range(STEPS * 4):
            decoded.put({"number": number, "row": tuple(fields(number)), "label": number % 3})
    except BaseException as error:
        failed.append(repr(error))
    finally:
        decoded.put(None)


def collate():
    try:
        batch = []
        while (sample := decoded.get()) is not None:
            batch.append(sample)
            if len(batch) == 4:
                rows = torch.tensor(tuple(each["row"] for each in batch))
                labels = torch.tensor(tuple(each["label"] for each in batch))
                ready.put((rows, labels, frozenset(each["number"] for each in batch)))
                batch = []
    except BaseException as error:
        failed.append(repr(error))
    finally:
        ready.put(None)


torch.manual_seed(0)
stages = [threading.Thread(target=stage) for stage in (decode, collate)]
for stage in stages:
    stage.start()
model = nn.Linear(60, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
outputs = []
seen = 0
while (batch := ready.get()) is not None:
    rows, labels, numbers = batch
    scores = model(rows)
    loss = nn.functional.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(scores.detach())
    seen += sum(numbers)
for stage in stages:
    stage.join()
print("batches", len(outputs), "numbers", seen, "failed", failed, f"loss {loss.item():.6g}")
