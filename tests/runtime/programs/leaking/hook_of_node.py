"""A hook of a Node leads back to the output of that Node: a cycle through C++ that stays."""

# kind = "graph"
# holder = "hook clear_cache() of a Node of the autograd graph"
# per_step = 2

from functools import partial

import torch
from torch import nn

torch.manual_seed(0)


class Strategy:
    def __init__(self, model, inputs):
        output = model(inputs)
        clear = partial(clear_cache, self)
        output.grad_fn.register_hook(clear)  # leak
        self.cache = {"output": output}


def clear_cache(strategy, *gradients):
    strategy.cache.clear()


def main():
    model = nn.Linear(32, 32)
    total = 0.0
    for _ in range(400):
        strategy = Strategy(model, torch.randn(16, 32))
        total += strategy.cache["output"].sum().item()
    print(f"{total:.1f}")


main()
