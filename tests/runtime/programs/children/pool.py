"""A pool of two workers in which each task is a training."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import torch
from torch import nn

losses = []


def train(number):
    torch.set_num_threads(1)
    torch.manual_seed(number)
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(150):
        loss = model(torch.randn(8, 20)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss if LEAKS else loss.item())
    return loss.item()


def main(kind, method):
    context = multiprocessing.get_context(method)
    if kind == "executor":
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            results = list(executor.map(train, range(2)))
    elif kind == "left":  # to be shut down by Python
        results = list(ProcessPoolExecutor(1, mp_context=context).map(train, range(2)))
    else:
        with context.Pool(1) as pool:  # it is terminated, by SIGTERM
            results = pool.map(train, range(2), chunksize=1)
    print("trained", len(results))


LEAKS = "leaks" in sys.argv
if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
