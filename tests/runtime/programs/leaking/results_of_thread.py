"""A thread puts a result for each step into a queue of its object, and nobody takes them out."""

# kind = "tensor"
# holder = "attribute `Queue.queue`"
# per_step = 1

import queue
import threading

import torch
from torch import nn


class Metrics:
    def __init__(self):
        self.ready, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.results = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.ready.acquire()
            self.results.put(torch.zeros(8, 8))  # leak
            self.done.release()


torch.manual_seed(0)
model, metrics = nn.Linear(16, 8), Metrics()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(1500):
    loss = model(torch.randn(32, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metrics.ready.release()
    metrics.done.acquire()  # a thread that lags behind would add 15 in 16 steps
