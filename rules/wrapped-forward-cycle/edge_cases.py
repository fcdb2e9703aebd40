"""Near misses are unmarked."""

import functools
import weakref


def wrap(module, run):
    module.forward = functools.partial(run, type(module).forward, weakref.ref(module))
    module.step = lambda *args: run(module.step, *args)  # leak: wrapped-forward-cycle
    old = object()
    module.forward = functools.partial(run, old)


class Options:
    policy = print

    def narrow(self, size):
        self.policy = functools.partial(self.policy, size)  # data, not a method
