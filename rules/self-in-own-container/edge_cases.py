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
        self.graph.nodes.append(self)  # as is that of what it is part of
        self.nodes.append(self)  # leak: self-in-own-container
        return torch.zeros(1)


class Hooked(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.by_name = {}
        self.all = dict(self.named_modules())  # leak: self-in-own-container
        self.listed = [m for m in self.modules()]  # leak: self-in-own-container
        self.below = dict(self.net.named_modules())
        self.children_by_name = dict(self.named_children())
        self.layers = [m for m in self.modules() if m is not self]
        self.names = [name for name, m in self.named_modules()]

    def setup(self):
        for name, module in self.named_modules():
            module.name = name
            self.by_name[name] = module  # leak: self-in-own-container
        for name, module in self.named_modules():
            if not name:
                continue
            self.by_name[name] = module
        for name, module in self.named_modules():
            if isinstance(module, torch.nn.Linear):
                self.by_name[name] = module
        for name, module in self.net.named_modules():
            self.by_name[name] = module


class Profiler:
    def __init__(self):
        self.running = weakref.WeakSet()
        self.by_name = weakref.WeakValueDictionary()
        self.known = set()
        self.running.add(self)
        self.by_name["own"] = self
        self.known.add(self)  # leak: self-in-own-container


class Recorder:
    def __init__(self, namespace, name, func):
        self.namespace, self.name, self.func = namespace, name, func
        self.kept = {}

    def __enter__(self):
        self.namespace[self.name] = self
        self.kept[self.name] = self  # leak: self-in-own-container

    def __exit__(self, *error):
        self.namespace[self.name] = self.func


class Tracker:
    started = []

    def start(self):
        self.started.append(self)

    def stop(self):
        self.started.pop()


class Node:
    def __init__(self):
        self.ring = []

    def close(self):
        self.ring.append(self)  # leak: self-in-own-container
