"""Near misses are unmarked."""

import weakref

import torch


class Engine:
    def __init__(self):
        self.handlers = {"step": []}
        self.parents = []

    def on(self, event, handler, *args):
        self.handlers[event].append((handler, (self,) + args))  # leak: self-in-own-container
        self.handlers[event].append((handler, (weakref.ref(self),) + args))
        self.handlers[event].append((handler, self.parents))
        self.handlers["own"] = [self]  # leak: self-in-own-container

    def attach(self, registry):
        registry.append(self)  # somebody else's container
        return torch.zeros(1)
