"""module.forward is replaced by a partial that keeps the module's own bound method."""

import functools
import gc

import torch
from torch import nn

STEPS = 400


def scaled(forward, scale, x):
    return forward(x) * scale


def scale_output(module, scale):
    module.forward = functools.partial(scaled, module.forward, scale)  # leak: wrapped-forward-cycle
    return module


def main():
    gc.disable()  # as trainers do that cannot afford its pauses
    total = 0.0
    for step in range(STEPS):
        module = scale_output(nn.Linear(64, 64), 0.5)
        total += float(module(torch.ones(1, 64)).detach().sum())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
