"""Steps by the time alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakcheck.runtime.sentinel import Sentinel


class TimeClock:
    """Makes a step of every so many seconds, in a thread, for programs without a loop of theirs."""

    def __init__(self, sentinel: Sentinel, every_s: float) -> None:
        self._sentinel = sentinel
        self._every_s = every_s
        self._over = threading.Event()
        sentinel.restart(f"every {every_s:g} s", trusted=True)
        self._thread = threading.Thread(target=self._run, name="leakcheck-clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Count no more steps."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            self._sentinel.step()
