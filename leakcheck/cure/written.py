"""Which files a program wrote, and what is in them when it has ended.

What Python's functions open is noted, what it is called once it is moved, and what torch.save is
given, which C++ opens; what else C++ opens is found by its time in the working directory. An audit
hook would see a little more, and is called at each `id()`: with one a look at the heap takes five
times as long.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from leakcheck.runtime.clock.imports import when_loaded

MOST_LOOKED_AT = 20_000  # files below the working directory: a data set may lie there
_WRITES = {"w", "a", "x", "+"}  # in a mode
_CHUNK_BYTES = 1 << 20
_PATHS = ("file", "path", "f", "dst")  # what `open`, `os.open`, `torch.save` and moves call theirs
_MOVES = ("replace", "rename", "link")  # shutil.move renames, or copies with `open`


class Written:
    """Notes the files that are opened to be written, from now on, but those in `apart`."""

    def __init__(self, apart: str) -> None:
        self._apart = os.path.realpath(apart) + os.sep
        self._folder = os.path.realpath(os.getcwd())
        self._began_ns = time.time_ns() - 10_000_000  # file times are of the newest tick
        self._paths: dict[str, None] = {}
        self._pid = os.getpid()
        builtins.open = io.open = _Open(io.open, self._note, _opens_to_write)
        os.open = _Open(os.open, self._note, _is_flagged_to_write)
        for name in _MOVES:
            setattr(os, name, _Open(getattr(os, name), self._note, _is_moved, at=1))
        when_loaded("torch.serialization", self._wrap_save)

    def hashes(self) -> dict[str, int]:
        """Return a hash of each file's bytes by its path, relative to the working directory."""
        paths = sorted({*self._noted(), *self._touched()})
        hashed = ((path, _hash(path)) for path in paths if not path.startswith(self._apart))
        known = ((path, crc) for path, crc in hashed if crc is not None)
        return {path.removeprefix(self._folder + os.sep): crc for path, crc in known}

    def _noted(self) -> Iterator[str]:
        """Yield the files that were noted, and those in the folders that were moved."""
        for path in self._paths:
            yield from islice(_files_below(path), MOST_LOOKED_AT) if os.path.isdir(path) else [path]

    def _note(self, path: str) -> None:
        if os.getpid() == self._pid:
            self._paths[os.path.realpath(path)] = None

    def _wrap_save(self, serialization: Any) -> None:
        plain = serialization.save
        serialization.save = wrapped = _Open(plain, self._note, _is_saved, at=1)
        torch: Any = sys.modules.get("torch")
        if getattr(torch, "save", None) is plain:  # it has the name already
            torch.save = wrapped

    def _touched(self) -> Iterator[str]:
        for path in islice(_files_below(self._folder), MOST_LOOKED_AT):
            if _changed_ns(path) >= self._began_ns:
                yield path


class _Open:
    """A function that opens, which notes what it writes; no method of a class that has it.

    `writes` says so by the arguments behind the path, which is the argument number `at`.
    """

    def __init__(
        self,
        plain: Callable[..., Any],
        note: Callable[[str], None],
        writes: Callable[..., bool],
        at: int = 0,
    ) -> None:
        self._plain, self._note, self._writes, self._at = plain, note, writes, at
        functools.update_wrapper(self, plain)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        opened = self._plain(*args, **kwargs)
        named = (kwargs[name] for name in _PATHS if name in kwargs)
        path = args[self._at] if len(args) > self._at else next(named, None)
        if isinstance(path, (str, os.PathLike)) and self._writes(*args[self._at + 1 :], **kwargs):
            self._note(os.fsdecode(path))
        return opened


def _opens_to_write(mode: str = "r", *_: Any, **__: Any) -> bool:
    return bool(set(mode) & _WRITES)


def _is_flagged_to_write(flags: int = os.O_RDONLY, *_: Any, **others: Any) -> bool:
    """Whether a path is opened to write, and is not of a directory that is open."""
    return bool(flags & (os.O_WRONLY | os.O_RDWR)) and others.get("dir_fd") is None


def _is_moved(*_: Any, **others: Any) -> bool:
    """Whether the new name is not of a directory that is open."""
    return others.get("dst_dir_fd") is None


def _is_saved(*_: Any, **__: Any) -> bool:
    return True


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
