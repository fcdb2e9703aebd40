"""The one place where what goes wrong in leakcheck ends, so that it never reaches the program.

Hooks, loop ticks, trace functions and callbacks of the collector run in the middle of the program's
own calls. Each runs under a guard: the first error is kept, and the sentinel ends the watch with
it as a note at the next step. What the program raises meanwhile, as by the handler of a signal, is
not ours to keep.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

Act = TypeVar("Act", bound=Callable[..., Any])


class ErrorGuard:
    """Keeps the first error of ours; `broken` tells it in a line, "" as long as all is well."""

    def __init__(self) -> None:
        self.broken = ""

    def keep(self, error: Exception) -> None:
        """Keep an error of ours; raise one of the program's again."""
        if is_of_program(error):
            raise error
        if not self.broken:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.broken = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        if os.environ.get("LEAKCHECK_DEBUG"):
            traceback.print_exception(error, file=sys.stderr)

    def check(self) -> None:
        """Raise what was kept, in a place where that ends the watch."""
        if self.broken:
            raise RuntimeError(self.broken)

    def guarded(self, act: Act) -> Act:
        """Return `act` so that it never raises; once it would have, it does nothing."""

        def run(*args: Any) -> Any:
            if self.broken:
                return None
            try:
                return act(*args)
            except Exception as error:
                self.keep(error)

        return run  # type: ignore[return-value]


def is_of_program(error: BaseException) -> bool:
    """Say whether the handler of a signal that came meanwhile raised an error."""
    handlers = set(map(id, _handler_codes()))
    return any(id(frame.f_code) in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _handler_codes() -> Iterator[Any]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        function = getattr(handler, "__func__", handler)
        yield getattr(function, "__code__", getattr(type(handler).__call__, "__code__", None))
