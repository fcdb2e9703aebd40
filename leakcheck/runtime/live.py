"""The line on the terminal while a program runs: step, state, rates; five times a second."""

from __future__ import annotations

from time import perf_counter
from typing import TextIO

from leakcheck.runtime.sentinel import Sentinel

EVERY_S = 0.2
CLEAR = "\r\x1b[K"


class LiveLine:
    """Rewrites one line of a terminal; writes nothing to anything else."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream  # None where the process was started without one
        self.on = stream is not None and stream.isatty()
        self._next_s = perf_counter() + EVERY_S
        self._shown = False

    def show(self, sentinel: Sentinel) -> None:
        """Rewrite the line if its time has come."""
        now_s = perf_counter()
        if now_s < self._next_s or not self.on:
            return
        self._next_s = now_s + EVERY_S
        step, state = sentinel.state
        self._write(f"{CLEAR}leakcheck: step {step:,}, {state}{sentinel.rates()}")
        self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write(CLEAR)
        self.on = False

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone, or the program closed stderr
            self.on = False
