"""A thread puts a result for each step into a queue; all are taken out when an epoch is over."""

import queue
import threading

import torch
from torch import nn


class Metrics:
    def __init__(self):
        self.ready = threading.Semaphore(0)
        self.results = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.ready.acquire()
            self.results.put(torch.zeros(8, 8))

    def total(self):
        total = 0.0
        while not self.results.empty():
            total += self.results.get().sum().item()
        return total


torch.manual_seed(0)
model, metrics = nn.Linear(16, 8), Metrics()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for epoch in range(8):
    for step in range(250):
        loss = model(torch.randn(32, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.ready.release()
    print(epoch, metrics.total())
