"""The function takes the model, and holds none."""

import gc

import torch
from torch import nn

STEPS = 400


def score(model, x):
    return model(x).sum()


def extend(model):
    model.score = score
    return model


def main():
    gc.disable()  # as trainers do that cannot afford its pauses
    total = 0.0
    for step in range(STEPS):
        model = extend(nn.Linear(1024, 2))
        total += float(model.score(model, torch.ones(1024)).detach())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
