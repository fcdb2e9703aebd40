"""A few samples are asked for ahead of the one that is needed."""

import time
from collections import deque
from multiprocessing.pool import ThreadPool

import torch
from torch import nn

STEPS = 300
SAMPLES = 20_000
AHEAD = 4


def decode(index):
    time.sleep(0.0005)
    return torch.ones(2048)


def prefetched(pool, indices):
    waiting = deque()
    for index in indices:
        waiting.append(pool.apply_async(decode, (index,)))
        if len(waiting) > AHEAD:
            yield waiting.popleft().get()


def main():
    model = nn.Linear(2048, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    pool = ThreadPool(1)
    steps = 0
    for sample in prefetched(pool, range(SAMPLES)):
        model(sample).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.002)  # training is slower than decoding
        steps += 1
        if steps == STEPS:
            break
    pool.terminate()
    print("done")


if __name__ == "__main__":
    main()
