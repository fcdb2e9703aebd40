"""atexit keeps the bound method, and with it every instance, until the program ends."""

import atexit

import torch

STEPS = 400


class Profiler:
    def __init__(self):
        self.times = torch.zeros(2048)
        self.done = False
        atexit.register(self.close)  # leak: atexit-method

    def close(self):
        self.done = True


def main():
    for step in range(STEPS):
        profiler = Profiler()
        profiler.times[step] = step
        profiler.close()
    print("done")


if __name__ == "__main__":
    main()
