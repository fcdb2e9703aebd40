"""A tracker keeps one dict of tensors a step, for the whole run."""

import torch

STEPS = 400


class Tracker:
    def __init__(self):
        self.history = []

    def update(self, step, logits):
        self.history.append({"step": step, "logits": logits.detach()})  # leak: growing-log

    def last(self):
        return self.history[-1]


def main():
    tracker = Tracker()
    for step in range(STEPS):
        tracker.update(step, torch.ones(2048))
    print(f"last step {tracker.last()['step']}")


if __name__ == "__main__":
    main()
