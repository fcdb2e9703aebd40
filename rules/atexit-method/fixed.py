"""atexit keeps a weak reference; an instance that is gone needs no closing."""

import atexit
import weakref

import torch

STEPS = 400


def close_living(living):
    for profiler in list(living):
        profiler.close()


class Profiler:
    living = weakref.WeakSet()

    def __init__(self):
        self.times = torch.zeros(2048)
        self.done = False
        Profiler.living.add(self)

    def close(self):
        self.done = True


atexit.register(close_living, Profiler.living)


def main():
    for step in range(STEPS):
        profiler = Profiler()
        profiler.times[step] = step
        profiler.close()
    print("done")


if __name__ == "__main__":
    main()
