"""The pool ends however the block does."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

STEPS = 3


@contextmanager
def workers(count):
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    finally:
        pool.shutdown()


def total(batch):
    with workers(2) as pool:
        return sum(pool.map(float, batch))


def main():
    for step in range(STEPS):
        print(total(torch.ones(step)))


if __name__ == "__main__":
    main()
