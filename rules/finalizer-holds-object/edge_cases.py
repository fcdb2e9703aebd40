"""Near misses are unmarked."""

import weakref


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
