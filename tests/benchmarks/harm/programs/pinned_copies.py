"""A thread like the pin-memory one copies nested batches; the training keeps its outputs."""

import collections
import queue
import threading

import torch
from torch import nn

Batch = collections.namedtuple("Batch", "rows labels meta")


def pinned(data):
    if isinstance(data, torch.Tensor):
        return data.clone()
    if isinstance(data, dict):
        return type(data)({key: pinned(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pinned(value) for value in data))
    if isinstance(data, (list, tuple)):
        return type(data)(pinned(value) for value in data)
    return data


def copy_all(coming, going, failed):
    while (item := coming.get()) is not None:
        try:
            going.put(pinned(item))
        except BaseException as error:
            failed.append(repr(error))
            going.put(None)


def main():
    torch.manual_seed(0)
    coming, going, failed = queue.Queue(), queue.Queue(), []
    thread = threading.Thread(target=copy_all, args=(coming, going, failed), daemon=True)
    thread.start()
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    outputs, names = [], set()

    def ask(step):
        meta = {"names": tuple(f"f{step % 5}.{k}" for k in range(40)), "parts": [(1, [2]), (3,)]}
        coming.put(Batch(torch.randn(8, 10), torch.arange(8) % 2, meta))

    for step in range(4):
        ask(step)
    for step in range(4, 304):
        ask(step)
        batch = going.get()
        scores = model(batch.rows)
        loss = nn.functional.cross_entropy(scores, batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append(scores.detach())
        names.update(batch.meta["names"])
    coming.put(None)
    thread.join()
    print("outputs", len(outputs), "names", len(names), "failed", failed, f"{loss.item():.6g}")


main()
