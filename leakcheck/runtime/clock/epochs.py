"""When does the DataLoader that feeds the steps begin anew? A trainer's epochs, loops unseen.

A loop of the user's own is seen to turn; a trainer's is in its library, and what a Lightning module
gathers for the end of an epoch looks like a leak until then. Most trainers go over a DataLoader.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from leakcheck.runtime.clock import loaders
from leakcheck.runtime.guard import ErrorGuard

MOST_SAMPLERS = 1000  # that are remembered: a program may make a loader for each task


class LoaderEpochs:
    """Calls `on_epoch` when the loader begins anew that gave the newest batch before a step."""

    def __init__(self, on_epoch: Callable[[], None]) -> None:
        self.guard = ErrorGuard()
        self._on_epoch = on_epoch
        self._newest: tuple[int, int] | None = None
        self._feeding: tuple[int, int] | None = None
        self._samplers: dict[int, weakref.ref[Any]] = {}  # by id: another may have it later

    @property
    def feed(self) -> bool:
        """Whether a loader gives the batches of the steps."""
        return self._feeding is not None

    def listen(self) -> None:
        """Notice from now on what every loader of the process gives."""
        loaders.listen(self)

    def stop(self) -> None:
        """Notice nothing any more."""
        loaders.stop_listening(self)

    def step(self) -> None:
        """Note that a step is over: the loader that gave the newest batch feeds it."""
        self.guard.check()
        self._feeding = self._newest

    def gave(self, sampler: Any, dataset: Any, count: int) -> None:
        """Note how many batches an iterator has given, and what it goes over."""
        known = self._samplers.get(id(sampler))
        if count:
            self._newest = (id(sampler), id(dataset))
            if len(self._samplers) >= MOST_SAMPLERS:
                self._samplers.clear()
            if known is None or known() is not sampler:
                with suppress(TypeError):  # a list of batches has no weak references
                    self._samplers[id(sampler)] = weakref.ref(sampler)
        elif self._feeding is not None:
            # one that is made anew for each epoch has another sampler, and goes over the same data
            other = known is not None and known() is sampler
            anew = not other and id(dataset) == self._feeding[1]
            if id(sampler) == self._feeding[0] or anew:
                self._on_epoch()
