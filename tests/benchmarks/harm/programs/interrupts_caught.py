"""Ctrl-C, caught again and again in a training loop."""

import os
import signal
import threading
import time

import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inside, caught = threading.Event(), 0


def interrupt():
    for number in range(150):
        inside.wait()
        inside.clear()
        time.sleep(0.001 + number % 7 / 5000)
        os.kill(os.getpid(), signal.SIGINT)


for _ in range(3):  # the first step imports
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
sender = threading.Thread(target=interrupt)
sender.start()
for _ in range(150):
    try:
        inside.set()
        while True:
            loss = model(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            linked = []
            linked.append(linked)
    except KeyboardInterrupt:
        caught += 1
sender.join()
print("caught", caught)
