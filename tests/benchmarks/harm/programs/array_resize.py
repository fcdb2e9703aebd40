"""A thread grows arrays in place, which numpy refuses while anyone else refers to them."""

import sys
import threading

import numpy as np
import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, refused, sums = threading.Event(), [], set()


class Samples:
    """Rows in an array that doubles in place when it is full."""

    def __init__(self):
        self.rows, self.count = np.zeros(4), 0

    def add(self, value):
        if self.count == len(self.rows):
            self.rows.resize(2 * len(self.rows))
        self.rows[self.count] = value
        self.count += 1


def collect():
    while not stop.is_set():
        samples, boxed = Samples(), np.empty(2, dtype=object)
        try:
            for value in range(200):
                samples.add(value)
            boxed.resize(5)
        except ValueError as error:
            refused.append(str(error).split("\n")[0])
        sums.add((float(samples.rows.sum()), boxed.shape))


torch.manual_seed(0)
thread = threading.Thread(target=collect)
thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
outputs = []
for _ in range(400):
    scores = model(torch.randn(8, 10))
    loss = scores.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(scores.detach())
stop.set()
thread.join()
print("sums", sorted(sums), "refused", len(refused), refused[:1], f"{loss.item():.6g}")
