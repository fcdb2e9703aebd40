"""Which files a program wrote, and what is in them when it has ended.

Python tells of each file that it opens; what C++ opens, as torch.save does, is found by its time in
the working directory.
"""

from __future__ import annotations

import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from itertools import islice

MOST_LOOKED_AT = 20_000  # files below the working directory: a data set may lie there
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT
_CHUNK_BYTES = 1 << 20


class Written:
    """Notes the files that are opened to be written, from now on, but those in `apart`."""

    def __init__(self, apart: str) -> None:
        self._apart = os.path.realpath(apart) + os.sep
        self._folder = os.path.realpath(os.getcwd())
        self._began_ns = time.time_ns() - 10_000_000  # file times are of the newest tick
        self._paths: dict[str, None] = {}
        self._pid = os.getpid()
        sys.addaudithook(self._note)

    def hashes(self) -> dict[str, int]:
        """Return a hash of each file's bytes by its path, relative to the working directory."""
        paths = sorted({*self._paths, *self._touched()})
        hashed = ((path, _hash(path)) for path in paths if not path.startswith(self._apart))
        known = ((path, crc) for path, crc in hashed if crc is not None)
        return {path.removeprefix(self._folder + os.sep): crc for path, crc in known}

    def _note(self, event: str, args: tuple[object, ...]) -> None:
        if event != "open" or os.getpid() != self._pid:
            return
        path, _, flags = args
        if type(path) is str and type(flags) is int and flags & _WRITES:
            self._paths[os.path.realpath(path)] = None

    def _touched(self) -> Iterator[str]:
        for path in islice(_files_below(self._folder), MOST_LOOKED_AT):
            if _changed_ns(path) >= self._began_ns:
                yield path


def _files_below(folder: str) -> Iterator[str]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each[:1] != "." and each != "__pycache__")
        yield from (os.path.join(at, name) for name in sorted(names))


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _hash(path: str) -> int | None:
    """Return the hash of a regular file, None where there is none any more."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        crc = 0
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                crc = zlib.crc32(chunk, crc)
        return crc
    except OSError:
        return None
