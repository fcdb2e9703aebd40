"""Each timer files itself in a list of its class, and none ever leaves."""

import torch

STEPS = 400


class Timer:
    all_timers = []

    def __init__(self):
        self.events = torch.zeros(2048)
        Timer.all_timers.append(self)  # leak: instance-registry

    def stop(self):
        self.events[0] = 1.0


def main():
    for step in range(STEPS):
        timer = Timer()
        timer.stop()
    print(f"timers {len(Timer.all_timers)}")


if __name__ == "__main__":
    main()
