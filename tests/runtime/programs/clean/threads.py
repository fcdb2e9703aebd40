import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
batches = queue.Queue(maxsize=8)


def produce():
    for _ in range(1200):
        batches.put(torch.randn(8, 16))
    batches.put(None)


threading.Thread(target=produce, daemon=True).start()
model = nn.Linear(16, 4)
optimizer = torch.optim.Adam(model.parameters())
while (batch := batches.get()) is not None:
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
