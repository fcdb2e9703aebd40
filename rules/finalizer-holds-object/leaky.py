"""The finalizer's callback is bound to the very object whose end it waits for."""

import weakref

import torch

STEPS = 300


class Storage:
    def __init__(self):
        self.buffer = torch.zeros(2048)
        weakref.finalize(self, self.close)  # leak: finalizer-holds-object

    def close(self):
        self.buffer = None


def main():
    total = 0.0
    for step in range(STEPS):
        storage = Storage()
        storage.buffer[0] = step
        total += storage.buffer.sum().item()
    print(f"total {total}")


if __name__ == "__main__":
    main()
