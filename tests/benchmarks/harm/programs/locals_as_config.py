"""The settings are what locals() said at the start, and a thread reads them; losses are kept."""

import threading

import torch
from torch import nn


def describe(config, stop, texts, failed):
    try:
        while not stop.is_set():
            texts.add(",".join(f"{name}={value}" for name, value in sorted(config.items())))
    except BaseException as error:
        failed.append(repr(error))


def train(rate=0.1, width=10, steps=300, seed=0):
    config = locals()
    torch.manual_seed(seed)
    stop, texts, failed = threading.Event(), set(), []
    thread = threading.Thread(target=describe, args=(dict(config), stop, texts, failed))
    thread.start()
    model = nn.Linear(width, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    for step in range(steps):
        loss = model(torch.randn(8, width)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        rate = 0.1 / (1 + step)
    stop.set()
    thread.join()
    print("config", config, "texts", texts, "failed", failed)
    print(f"last loss {losses[-1].item():.6g}")


train()
