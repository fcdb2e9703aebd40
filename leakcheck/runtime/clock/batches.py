"""Which DataLoader feeds the loop of a library, of those that it goes over?"""

from __future__ import annotations

from time import perf_counter

from leakcheck.runtime.clock.beside import OVER_AFTER, OVER_AFTER_S, Beside

MOST_LOADERS = 1000  # that are remembered: a program may make one for each task


class _Loader:
    """Stands for the loaders of one data set, which may be a list and have no weak references."""


class Feeding:
    """Says of each batch whether it is a step: those of a validation in between are none."""

    def __init__(self) -> None:
        self._beside = Beside()
        self._loaders: dict[int, _Loader] = {}  # by the data set's id
        self._counts: _Loader | None = None
        self._others = 0  # batches since one that was a step
        self._stepped_s = 0.0

    def is_step(self, dataset: object) -> bool:
        """Say whether a batch of `dataset` is a step."""
        if len(self._loaders) >= MOST_LOADERS:
            self._loaders.clear()
        loader = self._loaders.setdefault(id(dataset), _Loader())
        if loader is not self._counts:
            self._others += 1
            if not self._beside.makes_way(loader, idle=self._is_over()):
                return False
            self._counts = loader
        self._others, self._stepped_s = 0, perf_counter()
        return True

    def _is_over(self) -> bool:
        idle_s = perf_counter() - self._stepped_s
        return self._others >= OVER_AFTER and idle_s > OVER_AFTER_S
