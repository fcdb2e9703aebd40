"""Near misses are unmarked."""

import functools
from enum import Enum
from functools import lru_cache


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
