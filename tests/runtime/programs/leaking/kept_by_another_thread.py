"""A thread takes each prediction from a queue and keeps it in a variable of its own."""

# kind = "tensor"
# holder = "perhaps a variable of consume(), in another thread"
# per_step = 1

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
predictions = queue.Queue()


def consume():
    seen, count = {}, 0
    while True:
        seen[count] = predictions.get()  # leak
        count += 1
        predictions.task_done()


def main():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    threading.Thread(target=consume, daemon=True).start()
    for _ in range(600):
        output = model(torch.randn(8, 16))
        optimizer.zero_grad()
        output.square().mean().backward()
        optimizer.step()
        predictions.put(output.detach())
        predictions.join()


main()
