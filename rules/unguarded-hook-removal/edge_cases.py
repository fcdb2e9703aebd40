"""Near misses are unmarked."""

from contextlib import contextmanager

import pytest


def guarded(model, batch, hook):
    handle = model.register_forward_hook(hook)
    try:
        return model(batch)
    finally:
        handle.remove()


@contextmanager
def hooked(model, hook):
    handle = model.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def by_helper(model, batch):
    handles = add_hooks(model)  # leak: unguarded-hook-removal
    output = model(batch)
    drop_hooks(handles)
    return output


def add_hooks(model):
    return [layer.register_forward_hook(print) for layer in model.modules()]


def drop_hooks(handles):
    for handle in handles:
        handle.remove()


def probe(model):
    handle = model.register_forward_hook(print)  # removed before anything can fail
    handle.remove()


@contextmanager
def hooked_until_it_raises(model, hook):
    handle = model.register_forward_hook(hook)  # leak: unguarded-hook-removal
    yield
    handle.remove()


@pytest.fixture
def hooked_model(model, hook):
    handle = model.register_forward_hook(hook)  # pytest goes on behind the yield in any case
    yield model
    handle.remove()


@contextmanager
def others_hooks(layers, hook, model):
    for layer in layers:
        handle = layer.register_forward_hook(hook)  # the layer's own backward takes it off
        layer.own_handles.append(handle)
    handle = model.register_forward_hook(hook)  # leak: unguarded-hook-removal
    yield
    handle.remove()


class Swapped:
    def __init__(self, layers, hook):
        self.handles = []
        try:
            for layer in layers:
                self.handles.append(layer.register_forward_hook(hook))
            self.pack()
        except Exception:
            self.remove()  # whatever goes wrong takes them off again
            raise

    def remove(self):
        for handle in self.handles:
            handle.remove()


class SwappedUnlessMissing:
    def __init__(self, layers, hook):
        self.handles = []
        try:
            for layer in layers:
                handle = layer.register_forward_hook(hook)  # leak: unguarded-hook-removal
                self.handles.append(handle)
            self.pack()
        except KeyError:
            self.remove()
            raise

    def remove(self):
        for handle in self.handles:
            handle.remove()


def features(model, batch):
    found = {}

    def keep(module, args, output):
        found[type(module).__name__] = output

    handle = model.register_forward_hook(keep)  # leak: unguarded-hook-removal
    model(batch)
    handle.remove()
    return found


def stopped(model, batch):
    def stop(module, args):
        raise StopIteration

    handle = model.register_forward_pre_hook(stop)  # leak: unguarded-hook-removal
    try:
        model(batch)
    except StopIteration:
        pass
    handle.remove()


def last_output(model, batch):
    last = None

    def keep(module, args, output):
        nonlocal last
        last = output

    handle = model.register_forward_hook(keep)  # leak: unguarded-hook-removal
    model(batch)
    handle.remove()
    return last


def marked(model, batch):
    def mark(module, args, output):
        setattr(module, "seen", output)

    handle = model.register_forward_hook(mark)  # leak: unguarded-hook-removal
    model(batch)
    handle.remove()
