"""Near misses are unmarked."""

import itertools
from itertools import cycle as endless

from torch.utils.data import DataLoader

from mine import cycle


def batches(dataset, accelerator, train_dl, names):
    yield from itertools.cycle(DataLoader(dataset))  # leak: cycled-loader
    yield from endless(accelerator.prepare(train_dl))  # leak: cycled-loader
    yield from endless(zip(train_dl, names))  # leak: cycled-loader
    yield from cycle(train_dl)  # a generator of the project
    yield from itertools.cycle(names)
    yield from itertools.cycle(("a", "b"))
    source = DataLoader(dataset)
    yield from itertools.cycle(source)  # leak: cycled-loader
