"""Near misses are unmarked."""

from contextlib import contextmanager


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
