"""Near misses are unmarked."""

import functools
from functools import lru_cache
import weakref

import torch


def wrap(module, run):
    module.forward = functools.partial(run, type(module).forward, weakref.ref(module))
    module.step = lambda *args: run(module.step, *args)  # leak: wrapped-forward-cycle
    old = object()
    module.forward = functools.partial(run, old)


class Options:
    policy = print

    def narrow(self, size):
        self.policy = functools.partial(self.policy, size)  # data, not a method


def scale(module, factor):
    forward = module.forward

    def scaled(*args):
        return factor * forward(*args)

    module.forward = scaled  # leak: wrapped-forward-cycle


def count(modules):
    for module in modules:

        def counted(*args):
            module.seen += 1
            return type(module).forward(module, *args)

        module.forward = counted  # leak: wrapped-forward-cycle


def once(module, batch):
    forward = module.forward

    def doubled(*args):
        return 2 * forward(*args)

    module.forward = doubled
    try:
        return module(batch)
    finally:
        module.forward = forward


def weakly(module, factor):
    held, forward = weakref.ref(module), type(module).forward

    def scaled(*args):
        return factor * forward(held(), *args)

    module.forward = scaled


def for_all(cls):
    forward = cls.forward

    def traced(self, *args):
        return forward(self, *args)

    cls.forward = traced  # a class lives as long as the program


def for_a_class(layer):
    kind = type(layer)
    forward = kind.forward

    def traced(self, *args):
        return forward(self, *args)

    kind.forward = traced


def unpatched(module, method):
    forward = module.forward

    def once(*args):
        module.forward = forward
        return method(*args)

    module.forward = once


class Summarized(torch.nn.Module):
    def __init__(self, data):
        super().__init__()
        self.data = data
        self.summary = lru_cache(maxsize=1)(self.summary)  # leak: wrapped-forward-cycle
        self.total = lru_cache(maxsize=1)(total)  # of a plain function

    def summary(self):
        return self.data.mean()
