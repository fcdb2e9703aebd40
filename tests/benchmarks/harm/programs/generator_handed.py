"""A generator made in the main thread is used up in another; the training keeps its losses."""

import queue
import threading

import torch
from torch import nn


def samples(count):
    window = []
    for number in range(count):
        window.append(number)
        if len(window) > 6:
            window.pop(0)
        row = tuple(value % 5 / 5 for value in window)
        yield row + (0.0,) * (10 - len(row)), sum(window) % 2


def batched(source, size):
    batch = []
    for sample in source:
        batch.append(sample)
        if len(batch) == size:
            yield tuple(batch)
            batch = []


def fill(batches, ready, failed):
    try:
        for batch in batches:
            rows, labels = zip(*batch, strict=True)
            ready.put((torch.tensor(rows), torch.tensor(labels)))
    except BaseException as error:
        failed.append(repr(error))
    finally:
        ready.put(None)


def main():
    torch.manual_seed(0)
    ready, failed, losses = queue.Queue(4), [], []
    source = samples(300 * 16)
    batches = batched(source, 16)
    first = next(batches)
    thread = threading.Thread(target=fill, args=(batches, ready, failed))
    thread.start()
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while (batch := ready.get()) is not None:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    thread.join()
    print("first", len(first), "batches", len(losses), "failed", failed, f"{loss.item():.6g}")
    print("ended", source.gi_frame is None, batches.gi_frame is None)


main()
