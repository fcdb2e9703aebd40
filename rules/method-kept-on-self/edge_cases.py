"""Near misses are unmarked."""

from contextlib import contextmanager

import torch


class Base:
    def inherited(self, x):
        return torch.relu(x)


class Choice(Base):
    def __init__(self):
        self.state = torch.zeros(4)
        self.first = self.plain
        self.kept = None

    def choose(self, other):
        self.kept = self.plain  # leak: method-kept-on-self
        self.also = self.inherited  # leak: method-kept-on-self
        self.result = self.plain(1)
        self.value = self.kept
        self.of_another = other.plain
        self.static = self.shared
        self.got = self.computed

    def plain(self, x):
        return torch.tanh(x)

    @staticmethod
    def shared(x):
        return x

    @property
    def computed(self):
        return 1

    @contextmanager
    def with_other(self):
        before = self.method
        try:
            self.method = self.plain
            yield
        finally:
            self.method = before


class Guesser:
    """Without tensors: the collector may take its time."""

    def guess(self, batch):
        self.method = self.by_length
        return self.method(batch)

    def by_length(self, batch):
        return len(batch)
