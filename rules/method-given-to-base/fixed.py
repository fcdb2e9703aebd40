"""The base class calls a method that the derived class overrides; nothing is stored."""

import gc
from abc import ABC, abstractmethod

import torch

STEPS = 400


class Sampler(ABC):
    @abstractmethod
    def draw(self): ...

    def sample(self):
        return self.draw().sum()


class Uniform(Sampler):
    def __init__(self, size):
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
