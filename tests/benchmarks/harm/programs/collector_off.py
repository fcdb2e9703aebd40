"""A thread switches the collector off around its work and finds it as it set it; losses stay."""

import gc
import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, wrong, failed, sums = threading.Event(), [], [], set()


def work():
    try:
        while not stop.is_set():
            gc.disable()
            rows = [[n, (n, [n])] for n in range(500)]
            if gc.isenabled():
                wrong.append("on")
            sums.add(sum(row[0] for row in rows))
            gc.enable()
            rows = tuple((n,) for n in range(300))
            if not gc.isenabled():
                wrong.append("off")
            sums.add(len(rows))
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=work)
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
print("sums", sorted(sums), "wrong", len(wrong), set(wrong), "failed", failed, gc.isenabled())
print(f"last loss {losses[-1].item():.6g}")
