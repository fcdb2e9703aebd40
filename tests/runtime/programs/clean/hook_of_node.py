"""A hook of a Node leads back to the output of that Node, but weakly."""

import weakref
from functools import partial

import torch
from torch import nn

torch.manual_seed(0)


class Strategy:
    def __init__(self, model, inputs):
        output = model(inputs)
        clear = partial(clear_cache, weakref.ref(self))
        output.grad_fn.register_hook(clear)
        self.cache = {"output": output}


def clear_cache(strategy, *gradients):
    strategy().cache.clear()


def main():
    model = nn.Linear(32, 32)
    total = 0.0
    for _ in range(400):
        strategy = Strategy(model, torch.randn(16, 32))
        total += strategy.cache["output"].sum().item()
    print(f"{total:.1f}")


main()
