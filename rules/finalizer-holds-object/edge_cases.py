"""Near misses are unmarked."""

import weakref
from functools import partial


def unpin(tensor):
    tensor.fill_(0)


def pinned(tensor):
    weakref.finalize(tensor, unpin, tensor)  # leak: finalizer-holds-object
    return tensor


class Engine:
    def __init__(self, engine, on_close):
        self.engine = engine
        self.on_close = on_close
        weakref.finalize(self, lambda: self.engine.dispose())  # leak: finalizer-holds-object
        weakref.finalize(self, engine.dispose)
        weakref.finalize(self, unpin, self.engine)
        weakref.finalize(self, self.on_close)
        weakref.finalize(engine, self.close)

    def close(self):
        self.engine.dispose()


class Served:
    def __init__(self, engine):
        self.engine = engine
        stop = partial(self.run, self.engine.stop)
        weakref.finalize(self.engine, stop)  # leak: finalizer-holds-object
        free = partial(unpin, self.engine.buffer)
        weakref.finalize(self, free)
        last = lambda: self.engine.stop()  # noqa: E731
        weakref.finalize(self, last)  # leak: finalizer-holds-object

    def run(self, function):
        return function()


class Folder:
    def __init__(self, name):
        self.finalizer = weakref.finalize(self, self.remove, name)  # its class is held

    @classmethod
    def remove(cls, name):
        print(name)


class OwnFolder:
    def __init__(self, name):
        self.finalizer = weakref.finalize(self, self.remove, name)  # leak: finalizer-holds-object

    def remove(self, name):
        print(name)


class Held:
    def __init__(self, cache, record):
        self.epoch = cache.hold(record)
        weakref.finalize(self, cache.release, record, self.epoch is not None)
        weakref.finalize(self, cache.release, (record, self))  # leak: finalizer-holds-object
