"""A thread leaves it to the last reference to close its files, as much code does; losses stay."""

import os
import tempfile
import threading

import torch
from torch import nn

stop, failed, wrong = threading.Event(), [], []


def write(path, text):
    open(path, "w").write(text)


def save_and_check(folder):
    number = 0
    try:
        while not stop.is_set():
            path, text = os.path.join(folder, f"{number % 3}.txt"), f"sample {number}\n" * 20
            write(path, text)
            with open(path) as file:
                if file.read() != text:
                    wrong.append(number)
            number += 1
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    thread = threading.Thread(target=save_and_check, args=(folder,))
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
print("wrong", len(wrong), "failed", failed, f"{losses[-1].item():.6g}")
