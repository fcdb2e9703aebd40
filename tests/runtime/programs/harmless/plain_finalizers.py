"""Finalizers: weakref callbacks in their order, and a `__del__` that raises."""

import weakref


class Handle:
    def __init__(self, number):
        self.number = number

    def __del__(self):
        if self.number % 300 == 7:
            raise ValueError(self.number)


closed, kept = [], []
for step in range(900):
    handle = Handle(step)
    weakref.finalize(handle, closed.append, step)
    kept.append(weakref.ref(handle, lambda ref, step=step: closed.append(-step)))
print(closed == sorted(closed, key=lambda step: (abs(step), -step)), len(closed), closed[-2:])
