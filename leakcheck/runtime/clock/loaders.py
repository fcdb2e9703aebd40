"""Notice every batch that a DataLoader of the process gives, without a frame of ours around it.

Its iterator counts the batches that it gave: from 0, whenever it begins. That attribute is a
descriptor while anyone listens, so that no call of ours stands in a traceback of the program's.
"""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any, Protocol

from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.guard import Guard

LOADER_MODULE = "torch.utils.data.dataloader"
_COUNT = "_num_yielded"


class Listener(Protocol):
    """Is told of batches, by its guard; not kept alive for it."""

    guard: Guard

    def gave(self, sampler: Any, dataset: Any, count: int) -> None:
        """Note how many batches an iterator has given, and what it goes over."""


_listening: weakref.WeakSet[Listener] = weakref.WeakSet()
_iterators: list[type] = []  # the class whose attribute is ours, once it is loaded


def listen(listener: Listener) -> None:
    """Tell `listener` from now on what every loader of the process gives."""
    _listening.add(listener)
    if not _iterators:
        _iterators.append(object)  # asked for once
        when_loaded(LOADER_MODULE, _know)
    _install()


def stop_listening(listener: Listener) -> None:
    """Tell `listener` nothing any more."""
    _listening.discard(listener)
    if not _listening:
        for kind in _iterators:
            if isinstance(vars(kind).get(_COUNT), _Count):
                delattr(kind, _COUNT)


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
        told = (names.get("_index_sampler"), names.get("_dataset"), count)
        for listener in tuple(_listening):
            listener.guard.guarded(listener.gave)(*told)


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
