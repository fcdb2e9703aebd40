"""Each model is given a function that holds the model; only the garbage collector can free it."""

import gc

import torch
from torch import nn

STEPS = 400


def extend(model):
    model.score = lambda x: model(x).sum()  # leak: closure-kept-by-module
    return model


def main():
    gc.disable()  # as trainers do that cannot afford its pauses
    total = 0.0
    for step in range(STEPS):
        model = extend(nn.Linear(1024, 2))
        total += float(model.score(torch.ones(1024)).detach())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
