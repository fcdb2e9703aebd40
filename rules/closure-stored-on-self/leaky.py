"""A model keeps a lambda that keeps the model; only the garbage collector can free it."""

import gc

import torch
from torch import nn

STEPS = 400


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4096))
        self.score = lambda x: (x * self.weight).sum()  # leak: closure-stored-on-self

    def forward(self, x):
        return self.score(x)


def main():
    gc.disable()  # as trainers do that cannot afford its pauses
    total = 0.0
    for step in range(STEPS):
        scorer = Scorer()
        total += float(scorer(torch.ones(4096)).detach())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
