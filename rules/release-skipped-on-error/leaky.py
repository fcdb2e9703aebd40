"""Every block that raises leaves a pool of workers behind."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

STEPS = 3


@contextmanager
def workers(count):
    pool = ThreadPoolExecutor(count)
    yield pool  # leak: release-skipped-on-error
    pool.shutdown()


def total(batch):
    with workers(2) as pool:
        return sum(pool.map(float, batch))


def main():
    for step in range(STEPS):
        print(total(torch.ones(step)))


if __name__ == "__main__":
    main()
