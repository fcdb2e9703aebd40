"""A loop whose iterations are the steps: `for batch in leakcheck.watch(loader): ...`."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Generic, TypeVar

from leakcheck.runtime.attribution.loops import loops_around
from leakcheck.runtime.conclusion import summary
from leakcheck.runtime.sentinel import Sentinel
from leakcheck.source.tree import Loop

Item = TypeVar("Item")


class LeakWarning(UserWarning):
    """The loop that `watch` went through leaks."""


@dataclass(slots=True)
class _Place:
    """Where `watch` is called: its loop may begin anew each epoch, and is one loop all the same."""

    sentinel: Sentinel
    around: Sequence[tuple[CodeType, Loop]] = ()  # the loops around it, as one over epochs
    in_use: bool = False
    told: bool = False


_Key = tuple[CodeType, int, int, int]  # code, instruction, thread, process
_PLACES: dict[_Key, _Place] = {}
_PLACES_LOCK = threading.Lock()
MOST_PLACES = 8  # of those that are not in use: each has series and a callback of the collector


def watch(loop: Iterable[Item], sentinel: Sentinel | None = None) -> WatchedLoop[Item]:
    """Go through `loop` with a step after each item; warns with a LeakWarning if it leaks.

    What is called at the same place again, as in every epoch, goes on with the steps of before.
    Pass a sentinel to read its report yourself; it is started here and not stopped.
    """
    caller = sys._getframe(1)
    around = list(loops_around(caller))
    if sentinel is not None:
        return WatchedLoop(loop, _Place(sentinel.start(), around, told=True))
    key = (caller.f_code, caller.f_lasti, threading.get_ident(), os.getpid())
    with _PLACES_LOCK:
        place = _PLACES.pop(key, None)
        if place is None or place.in_use:  # a loop inside itself is another loop
            place = _Place(Sentinel(), around)
        _PLACES[key] = place  # the newest last
        _forget_oldest()
    return WatchedLoop(loop, place)


def _forget_oldest() -> None:
    idle = [key for key, place in _PLACES.items() if not place.in_use]
    for key in idle[:-MOST_PLACES]:
        _PLACES.pop(key).sentinel.stop()


class WatchedLoop(Generic[Item]):
    """`loop`, watched; its length and all else is asked of `loop` itself."""

    def __init__(self, loop: Iterable[Item], place: _Place) -> None:
        self._loop = loop
        self._place = place
        self._begun: Iterator[Item] | None = None

    def __iter__(self) -> Iterator[Item]:
        return self._begun or self._steps()

    def __next__(self) -> Item:
        if self._begun is None:
            self._begun = self._steps()
        return next(self._begun)

    def __len__(self) -> int:
        return len(self._loop)  # type: ignore[arg-type]  # a TypeError, as without us

    def __bool__(self) -> bool:
        return bool(self._loop)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_loop" not in vars(self):
            raise AttributeError(name)
        return getattr(self._loop, name)

    def _steps(self) -> Iterator[Item]:
        place = self._place
        sentinel = place.sentinel.start()
        place.in_use = True
        sentinel.loop_begins(place.around)
        try:
            for item in self._loop:
                yield item
                del item
                sentinel.step()
                if not place.told and sentinel.state[1] == "growing":
                    _warn_once(place)
        finally:
            place.in_use = False
            if not place.told and not place.around:
                sentinel.pause()
            if not place.told:
                _warn_once(place)


def _warn_once(place: _Place) -> None:
    report = place.sentinel.report()
    if report.verdict == "growing":
        place.told = True
        warnings.warn(summary(report), LeakWarning, stacklevel=3)


@atexit.register
def _warn_at_exit() -> None:
    """Tell of loops that could have been released in one more turn of the loop around them."""
    for (code, _, _, process), place in _PLACES.items():
        if not place.told and process == os.getpid():
            place.sentinel.stop()
            report = place.sentinel.report()
            if report.verdict == "growing":
                told = (summary(report), LeakWarning, code.co_filename, code.co_firstlineno)
                warnings.warn_explicit(*told)
