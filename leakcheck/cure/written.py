"""Which files a program wrote, and what is in them when it has ended.

What Python's functions open is noted in the program's process, what it is called once it is moved,
what sqlite3 connects to, and what torch.save is given, which C++ opens. Whoever started the process
reads them once it has ended: until then functions of `atexit` write, and what is never closed is
not yet there. What else C++ opens is found by its time in the working directory. An audit hook
would see a little more, and is called at each `id()`: with one a look at the heap takes five times
as long.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from leakcheck.runtime.clock.imports import when_loaded

MOST_LOOKED_AT = 20_000  # files below the working directory: a data set may lie there
_WRITES = {"w", "a", "x", "+"}  # in a mode
_CHUNK_BYTES = 1 << 20
# what `open`, `os.open`, `torch.save`, moves and `sqlite3.connect` call theirs
_PATHS = ("file", "path", "f", "dst", "database")
_LIST = "written"  # in the trial's folder
_TICK_NS = 10_000_000  # file times are of the newest tick
_MOVES = ("replace", "rename", "link")  # shutil.move renames, or copies with `open`


class Written:
    """Notes the files that are opened to be written, from now on, in a trial's folder."""

    def __init__(self, folder: str) -> None:
        self._list = os.open(os.path.join(folder, _LIST), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._paths: set[str] = set()
        self._pid = os.getpid()
        builtins.open = io.open = _Open(io.open, self._note_file, _opens_to_write)
        os.open = _Open(os.open, self._note_file, _is_flagged_to_write)
        for name in _MOVES:
            setattr(os, name, _Open(getattr(os, name), self._note, _is_moved, at=1))
        when_loaded("torch.serialization", self._wrap_save)
        when_loaded("sqlite3", self._wrap_connect)

    def _note_file(self, path: str) -> None:
        if not os.path.isdir(path):  # in which a file without a name is opened
            self._note(path)

    def _note(self, path: str) -> None:
        path = os.path.realpath(path)
        if os.getpid() == self._pid and path not in self._paths:
            self._paths.add(path)
            os.write(self._list, os.fsencode(path) + b"\0")

    def _wrap_save(self, serialization: Any) -> None:
        plain = serialization.save
        serialization.save = wrapped = _Open(plain, self._note, _is_written, at=1)
        torch: Any = sys.modules.get("torch")
        if getattr(torch, "save", None) is plain:  # it has the name already
            torch.save = wrapped

    def _wrap_connect(self, sqlite3: Any) -> None:
        sqlite3.connect = _Open(sqlite3.connect, self._note, _is_database)


def hashes(folder: str, began_ns: int) -> dict[str, int]:
    """Return a hash of each file's bytes by its path, relative to the working directory.

    `folder`: of a trial that has ended, whose own files are left out; `began_ns`: when it began.
    """
    here, apart = os.path.realpath(os.getcwd()), os.path.realpath(folder) + os.sep
    paths = sorted({*_noted(folder), *_touched(here, began_ns - _TICK_NS)})
    hashed = ((path, _hash(path)) for path in paths if not path.startswith(apart))
    known = ((path, crc) for path, crc in hashed if crc is not None)
    return {path.removeprefix(here + os.sep): crc for path, crc in known}


def _noted(folder: str) -> Iterator[str]:
    """Yield the files that were noted, and those in the folders that were moved."""
    try:
        with open(os.path.join(folder, _LIST), "rb") as file:
            paths = file.read().split(b"\0")
    except OSError:
        return
    for path in map(os.fsdecode, filter(None, paths)):
        yield from islice(_files_below(path), MOST_LOOKED_AT) if os.path.isdir(path) else [path]


def _touched(folder: str, since_ns: int) -> Iterator[str]:
    for path in islice(_files_below(folder), MOST_LOOKED_AT):
        if _changed_ns(path) >= since_ns:
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
        if isinstance(path, (str, bytes, os.PathLike)) and self._writes(
            *args[self._at + 1 :], **kwargs
        ):
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


def _is_written(*_: Any, **__: Any) -> bool:
    return True


def _is_database(*_: Any, **others: Any) -> bool:
    return not others.get("uri")


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
