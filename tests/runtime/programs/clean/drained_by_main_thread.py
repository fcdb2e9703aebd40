"""Training in a thread, whose results the main thread takes out now and then."""

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
full, results, lock = queue.Queue(), [], threading.Lock()


def train():
    model = nn.Linear(20, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, 3001):
        loss = model(torch.randn(16, 20)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with lock:
            results.append((step, loss.detach()))
        if step % 200 == 0:
            full.put(step)
    full.put(None)


trainer = threading.Thread(target=train)
trainer.start()
while (step := full.get()) is not None:
    with lock:
        print(step, sum(loss.item() for _, loss in results))
        results.clear()
trainer.join()
