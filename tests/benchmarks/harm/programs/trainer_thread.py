"""The training runs in a thread, keeps its losses and reports; the main thread waits for it."""

import queue
import threading

import torch
from torch import nn


def train(reports, failed):
    torch.manual_seed(0)
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    try:
        for step in range(300):
            loss = model(torch.randn(8, 10)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
            reports.put({"step": step, "loss": loss.item()})
    except BaseException as error:
        failed.append(repr(error))
    finally:
        reports.put(None)


def main():
    reports, failed = queue.Queue(), []
    trainer = threading.Thread(target=train, args=(reports, failed), name="trainer")
    trainer.start()
    lines = []
    while (report := reports.get()) is not None:
        lines.append("{step}:{loss:.4f}".format(**report))
        tuple(line.partition(":")[0] for line in lines[-100:])
    trainer.join()
    print("reports", len(lines), lines[0], lines[-1], "failed", failed)


main()
