"""Near misses are unmarked."""

import functools
import logging
from enum import Enum
from functools import lru_cache

import torch
from torch import nn


class Batch:
    @property
    @lru_cache(maxsize=10)  # leak: cached-method
    def total(self):
        return 1

    @functools.cached_property
    def mean(self):
        return 1

    @staticmethod
    @lru_cache
    def table(size):
        return size

    @classmethod
    @lru_cache
    def kinds(cls):
        return ()

    @lru_cache(maxsize=256)  # a table of sizes; the few batches it keeps are light
    def grid(self, height, width):
        return [(y, x) for y in range(height) for x in range(width)]

    @lru_cache(maxsize=256)  # leak: cached-method
    def vector(self, word) -> torch.Tensor:
        return torch.zeros(300)

    @lru_cache(maxsize=None)  # leak: cached-method
    def words(self, text):
        return text.split()

    @lru_cache(maxsize=1)  # keeps one instance at most
    def last(self):
        return 1

    def cache(self):
        return lru_cache


class Color(Enum):
    RED = 1

    @lru_cache
    def rgb(self):
        return (255, 0, 0)


class Anchors(nn.Module):
    @lru_cache(maxsize=32)  # leak: cached-method
    def of(self, height, width):
        return height * width


class Log(logging.LoggerAdapter):
    @functools.cache  # a logger lives as long as the program
    def once(self, message):
        self.warning(message)


class Samples(torch.utils.data.Dataset):
    @lru_cache(maxsize=8)
    def __getitem__(self, index):  # the next eight samples, of whichever set, push it out
        return self.read(index)

    @lru_cache(maxsize=8)  # leak: cached-method
    def shapes(self):
        return [sample.shape for sample in self]

    @lru_cache(maxsize=None)  # leak: cached-method
    def collated(self, indices):
        return [self[index] for index in indices]
