"""Hogwild: two processes train one model in shared memory, without locks."""

import sys

import torch
import torch.multiprocessing as mp
from torch import nn

losses = []


def train(model, number, leaks):
    torch.manual_seed(number)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(150):
        loss = model(torch.randn(8, 20)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss if leaks else loss.item())


def main(method, leaks):
    torch.set_num_threads(1)
    mp.set_start_method(method)
    model = nn.Linear(20, 3)
    model.share_memory()
    workers = [mp.Process(target=train, args=(model, number, leaks)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("trained", [worker.exitcode for worker in workers])


if __name__ == "__main__":
    main(sys.argv[1], "leaks" in sys.argv)
