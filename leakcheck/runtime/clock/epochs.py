"""When does the DataLoader that feeds the steps begin anew? A trainer's epochs, loops unseen.

A loop of the user's own is seen to turn; a trainer's is in its library, and what a Lightning module
gathers for the end of an epoch looks like a leak until then. Most trainers go over a DataLoader,
whose iterator counts the batches it gave: from 0, whenever an epoch begins. That attribute is a
descriptor while anyone listens, so that no call of ours stands in a traceback of the program's.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from leakcheck.runtime.clock.imports import when_loaded

LOADER_MODULE = "torch.utils.data.dataloader"
MOST_SAMPLERS = 1000  # that are remembered: a program may make a loader for each task
_COUNT = "_num_yielded"
_listening: weakref.WeakSet[LoaderEpochs] = weakref.WeakSet()
_iterators: list[type] = []  # the class whose attribute is ours, once it is loaded


class LoaderEpochs:
    """Calls `on_epoch` when the loader begins anew that gave the newest batch before a step."""

    def __init__(self, on_epoch: Callable[[], None]) -> None:
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
        _listening.add(self)
        if not _iterators:
            _iterators.append(object)  # asked for once
            when_loaded(LOADER_MODULE, _know)
        _install()

    def stop(self) -> None:
        """Notice nothing any more."""
        _listening.discard(self)
        if not _listening:
            for kind in _iterators:
                if isinstance(vars(kind).get(_COUNT), _Count):
                    delattr(kind, _COUNT)

    def step(self) -> None:
        """Note that a step is over: the loader that gave the newest batch feeds it."""
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


class _Count:
    """Stands for the attribute, which stays where it is, in the iterator's own dictionary."""

    def __get__(self, iterator: Any, kind: type | None = None) -> Any:
        if iterator is None:
            return self
        try:
            return vars(iterator)[_COUNT]
        except KeyError:
            told = f"{type(iterator).__name__!r} object has no attribute {_COUNT!r}"
            raise AttributeError(told) from None

    def __set__(self, iterator: Any, count: Any) -> None:
        names = vars(iterator)
        names[_COUNT] = count
        with suppress(Exception):  # ours, and the program must not pay for it
            for listener in tuple(_listening):
                listener.gave(names.get("_index_sampler"), names.get("_dataset"), count)


def _know(module: ModuleType) -> None:
    kind = getattr(module, "_BaseDataLoaderIter", None)
    if isinstance(kind, type):
        _iterators.append(kind)
    if _listening:
        _install()


def _install() -> None:
    for kind in _iterators[1:]:
        if not hasattr(kind, _COUNT):
            setattr(kind, _COUNT, _Count())
