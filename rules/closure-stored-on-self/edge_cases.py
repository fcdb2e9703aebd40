"""Near misses are unmarked."""

import weakref
from functools import partial

import torch
from torch import nn


class Plain:
    def __init__(self, size):
        self.size = size
        self.area = lambda: self.size**2  # holds no tensors: garbage of a few bytes


class Head(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.act = lambda x: x.relu()
        me = weakref.ref(self)
        self.weak = lambda x: me().layer(x)
        self.steps = []
        self.steps.append(lambda x: self.layer(x))  # leak: closure-stored-on-self
        self.run = partial(self.scaled, scale=2)  # leak: closure-stored-on-self
        self.pool = partial(nn.functional.avg_pool2d, kernel_size=self.size)

        def score(x):
            return self.layer(x)

        self.score = score  # leak: closure-stored-on-self

        def plain(x):
            return x

        self.plain = plain

    size = 2

    def scaled(self, x, scale):
        return self.layer(x) * scale


class Engine:
    def __init__(self):
        self.handlers = []

    def _wrap(self, handler):
        def wrapper(*args):
            return handler(self, *args)

        return wrapper

    def _plain(self, handler):
        def wrapper(*args):
            return handler(*args)

        return wrapper

    def add(self, handler):
        wrapped = self._wrap(handler)  # leak: closure-stored-on-self
        self.handlers.append((wrapped, 1))
        plain = self._plain(handler)
        self.handlers.append(plain)
        used = self._wrap(handler)
        used()

    def hand_out(self, engine):
        self.names = {name: len(name) for name in engine.names}
        engine.handlers[0] = (self._wrap(print), 1)  # the engine's, not self's
        self.handlers[0] = (self._wrap(print), 1)  # leak: closure-stored-on-self


class Compiled:
    def loss(self, x):
        @torch.compile
        def compiled(x):
            return self.scale * x

        self.kept = compiled  # leak: closure-stored-on-self
        return self.kept(x)


class Factored:
    def factor(self, matrix):
        self.q, self.r = torch.linalg.qr(matrix)

        def solve(x):
            return self.q @ x

        self.solve = solve  # leak: closure-stored-on-self


class Counted:
    def count(self, items):
        self.first, self.last = items

        def between(x):
            return self.first < x

        self.between = between


class Activation(nn.Module):
    def __init__(self, beta: float = 1.0):
        super().__init__()
        self.beta = beta
        self.gate = nn.Sigmoid()
        self.apply_to = lambda x: self.gate(self.beta * x) * x  # a module, and holds no tensors


class Learned(nn.Module):
    def __init__(self):
        super().__init__()
        self.beta = nn.Parameter(torch.ones(1))
        self.apply_to = lambda x: self.beta * x  # leak: closure-stored-on-self


class WithPart(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part
        self.apply_to = lambda x: self.part(x)  # leak: closure-stored-on-self


class Asks(nn.Module):
    def __init__(self, questions):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.asked = self.check(questions)
        self.checker = self.check_later()  # leak: closure-stored-on-self

    def check(self, questions):
        def is_short(question):
            return len(question) < self.layer.in_features

        return is_short(questions)  # what it gives, and not the function

    def check_later(self):
        def is_short(question):
            return len(question) < self.layer.in_features

        return is_short


class Patched:
    def __init__(self, model):
        self.model = model
        self.original = None

    def __enter__(self):
        self.original = self.model.forward
        self.model.forward = lambda x: self.original(x)  # put back as the block ends
        self.again = lambda x: self.original(x)  # leak: closure-stored-on-self
        return self

    def __exit__(self, *error):
        self.model.forward = self.original
