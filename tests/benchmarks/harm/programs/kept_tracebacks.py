"""A thread keeps exceptions with their tracebacks for a report; the training keeps its losses."""

import sys
import threading
import traceback

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, failed, shapes = threading.Event(), [], set()


def deeper(depth, *values):
    try:
        if not depth:
            raise LookupError(f"nothing in {len(values)}")
        return deeper(depth - 1, depth, *values)
    finally:
        values = ()


def attempt():
    try:
        deeper(5)
    except LookupError as error:
        raise ValueError("no batch") from error


def report():
    kept = []
    try:
        while not stop.is_set():
            try:
                attempt()
            except ValueError as error:
                kept.append(error)
            if len(kept) == 20:
                texts = {"".join(traceback.format_exception(each)) for each in kept}
                depths = {len(traceback.extract_tb(each.__cause__.__traceback__)) for each in kept}
                inner = kept[0].__cause__.__traceback__.tb_next.tb_frame.f_locals
                shapes.add((len(texts), *depths, tuple(sorted(inner)), sys.exc_info()[0]))
                for each in kept:
                    traceback.clear_frames(each.__traceback__)
                kept.clear()
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=report)
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
print("shapes", shapes, "failed", failed, f"{losses[-1].item():.6g}")
