"""Near misses are unmarked."""

import torch


class Tree(torch.nn.Module):
    def forward(self, x, depth):
        def walk(x, depth):  # leak: recursive-closure
            return x if depth == 0 else walk(self.mix(x), depth - 1)

        def level(x):
            return self.mix(x)  # does not call itself

        def count(depth):
            return 0 if depth == 0 else 1 + count(depth - 1)  # holds no self

        return walk(level(x), count(depth))

    def setup(self, stage):
        self.name_parts(stage)

    def name_parts(self, stage):
        def name(module):  # only called by what sets up
            module.stage = (self.stage, stage)
            for child in module.children():
                name(child)

        name(self)

    def visit(self, stage):
        def name(module):  # leak: recursive-closure
            module.stage = (self.stage, stage)
            for child in module.children():
                name(child)

        name(self)


class Light:
    """An object without tensors: its cycle costs nothing."""

    def __init__(self, names):
        self.names = names

    def depth(self, tree):
        def walk(part):
            return max(map(walk, part), default=len(self.names))

        return walk(tree)
