"""Near misses are unmarked."""

import weakref

import torch


class Holder:
    def __init__(self, owner, size):
        self.owner = owner
        self.size = size


class Weak:
    def __init__(self, owner):
        self.owner = weakref.proxy(owner)


class Looks:
    def __init__(self, owner):
        self.size = owner.size


class Dropped:
    def start(self):
        self.run = Holder(self, 1)

    def stop(self):
        self.run = None


class Manager:
    def __init__(self, model):
        self.model = model
        self.model.manager = self

    def end(self):
        delattr(self.model, "manager")


class Bar:
    def __init__(self, container):
        self.container = container
        self.container.bar = self  # leak: back-reference
        self.parts = []
        self.child = Holder(self, 1)
        self.state = torch.zeros(4)

    def name(self):
        cls = type(self)
        cls.shared = Holder(cls, 1)

    def show(self, view, item, other):
        view.part = Holder(view, size=2)  # leak: back-reference
        view.by_name = Holder(size=2, owner=view)  # leak: back-reference
        view.weak = Weak(view)
        view.looks = Looks(view)
        view.of_another = Holder(other, 2)
        view.sized = Holder(other, view)  # leak: back-reference
        item.owner = self  # leak: back-reference
        self.parts.append(item)
        other.owner = self
        self.reader = Holder(self, 3)  # leak: back-reference


class Light:
    """Nothing in the cycle is a tensor, or holds one."""

    def open(self, path):
        self.path = path
        self.reader = Holder(self, 3)
        self.reader.light = self
