"""A daemon thread reads how the process is doing, as metric agents do; losses are kept."""

import os
import threading
import time

import torch
from torch import nn

failed, measured = [], []


def measure():
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        try:
            with open("/proc/self/statm") as file:
                resident = int(file.read().split()[1]) * page
            with open("/proc/self/status") as file:
                fields = dict(line.split(":", 1) for line in file)
            threads = int(fields["Threads"])
            measured.append((resident > 0, threads > 0, len(os.listdir("/proc/self/fd")) > 0))
        except BaseException as error:
            failed.append(repr(error))
        time.sleep(0.002)


torch.manual_seed(0)
threading.Thread(target=measure, daemon=True).start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(300):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    time.sleep(0.0005)
print("measured", set(measured), "failed", failed, f"{losses[-1].item():.6g}")
