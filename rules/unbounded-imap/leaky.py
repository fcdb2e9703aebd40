"""imap works through the whole data set whether or not anyone takes the results."""

import time
from multiprocessing.pool import ThreadPool

import torch
from torch import nn

STEPS = 600
SAMPLES = 20_000


def decode(index):
    time.sleep(0.0005)
    return torch.ones(2048)


def main():
    model = nn.Linear(2048, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    pool = ThreadPool(1)
    steps = 0
    for sample in pool.imap(decode, range(SAMPLES)):  # leak: unbounded-imap
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
