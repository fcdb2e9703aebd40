"""Notice every batch that a DataLoader of the process gives, without a frame of ours around it.

Its iterator counts the batches that it gave: from 0, whenever it begins. That attribute is a
descriptor while anyone listens, so that no call of ours stands in a traceback of the program's.
"""

from __future__ import annotations

from typing import Any, Protocol

from leakcheck.runtime.clock.tap import Tap, Tapped
from leakcheck.runtime.guard import ErrorGuard

LOADER_MODULE = "torch.utils.data.dataloader"
_COUNT = "_num_yielded"


class LoaderListener(Protocol):
    """What is told of batches, through its guard; the tap refers to it weakly."""

    guard: ErrorGuard

    def gave(self, sampler: Any, dataset: Any, count: int) -> None:
        """Note how many batches an iterator has given, and what it goes over."""


class _Count(Tapped):
    """A data descriptor over the attribute, whose value stays in the iterator's own dictionary."""

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
        for listener in _tap.listeners:
            listener.guard.hidden(listener.gave)(*told)


_tap = Tap[LoaderListener](LOADER_MODULE, "_BaseDataLoaderIter", _COUNT, _Count, replaces=False)
listen, stop_listening = _tap.listen, _tap.stop_listening
