"""Standard error as it was when the program began: it may close, replace or redirect its own."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO

from leakcheck.writing import Descriptor


class FirstStderr:
    """Where the report goes, whatever the program does with `sys.stderr` or descriptor 2."""

    def __init__(self) -> None:
        self._stream: TextIO | None = sys.stderr  # None where the process was started without one
        self.on_terminal = False
        self._kept: Descriptor | None = None
        with suppress(Exception):
            self.on_terminal = sys.stderr.isatty()
            self._kept = Descriptor(sys.stderr.fileno())

    def forget(self) -> None:
        """Close our copy: in a forked child, which may outlive us, its reader would wait for it."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def tell(self, text: str) -> None:
        """Write lines, behind what the program has written, if anything leads out any more."""
        if self._stream is None:
            return
        with suppress(Exception):
            self._stream.flush()
        with suppress(Exception):
            if self._kept is not None:
                self._kept.write(f"{text}\n".encode(self._encoding(), "backslashreplace"))
            else:
                print(text, file=self._stream, flush=True)

    def _encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"
