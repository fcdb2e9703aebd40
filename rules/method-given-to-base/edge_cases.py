"""Near misses are unmarked."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, width, make_stem):
        super().__init__()
        self.width = width
        self.stem = make_stem(width)  # it is called, and not kept


class Keeping(nn.Module):
    def __init__(self, width, make_stem):
        super().__init__()
        self.makers = [make_stem]
        self.stem = make_stem(width)


class Calling(Network):
    def __init__(self):
        super().__init__(8, make_stem=self.make)

    def make(self, width):
        return nn.Linear(width, width)


class Kept(Keeping):
    def __init__(self):
        super().__init__(8, self.make)  # leak: method-given-to-base

    def make(self, width):
        return nn.Linear(width, width)


class Projecting(nn.Module):
    def __init__(self, project):
        super().__init__()
        self.project = project


class Replaced(Projecting):
    def __init__(self):
        super().__init__(self.make)
        self.project = nn.Linear(8, 8)  # what the base bound is let go

    def make(self, width):
        return nn.Linear(width, width)


class ReplacedBefore(Projecting):
    def __init__(self):
        self.project = nn.Linear(8, 8)
        super().__init__(self.make)  # leak: method-given-to-base

    def make(self, width):
        return nn.Linear(width, width)


class OfNobodyKnows(torch.utils.data.Sampler):
    def __init__(self):
        super().__init__(self.draw)  # leak: method-given-to-base

    def draw(self):
        return torch.ones(3)


class Loader(torch.utils.data.DataLoader):
    def __init__(self, samples):
        super().__init__(samples, collate_fn=self.collate)  # one that lives as long as the run

    def collate(self, samples):
        return torch.stack(samples)


class KeptToo(Keeping):
    def __init__(self):
        super().__init__(4, self.make)  # told at `Kept`: it is the same base that stores it

    def make(self, width):
        return nn.Linear(width, 2 * width)
