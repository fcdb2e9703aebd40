"""The base class stores the bound method it is given, so the object holds itself."""

import gc

import torch

STEPS = 400


class Sampler:
    def __init__(self, propose):
        self.propose = propose

    def sample(self):
        return self.propose().sum()


class Uniform(Sampler):
    def __init__(self, size):
        super().__init__(self.draw)  # leak: method-given-to-base
        self.table = torch.ones(size)

    def draw(self):
        return self.table * 0.5


def main():
    gc.disable()  # as trainers do that cannot afford its pauses
    total = 0.0
    for step in range(STEPS):
        total += float(Uniform(2048).sample())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
