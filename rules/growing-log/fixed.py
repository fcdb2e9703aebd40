"""The tracker keeps a window."""

from collections import deque

import torch

STEPS = 400


class Tracker:
    def __init__(self):
        self.history = deque(maxlen=16)

    def update(self, step, logits):
        self.history.append({"step": step, "logits": logits.detach()})

    def last(self):
        return self.history[-1]


def main():
    tracker = Tracker()
    for step in range(STEPS):
        tracker.update(step, torch.ones(2048))
    print(f"last step {tracker.last()['step']}")


if __name__ == "__main__":
    main()
