"""Whose code a frame runs, and what the local names of the running functions hold.

A local of a running function is no gc referrer on CPython 3.11 and later, so the frames of every
thread and of every suspended generator are roots of their own.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    GeneratorType,
    ModuleType,
)
from typing import Any

from leakcheck.model import Place

_PACKAGE = str(Path(__file__).parents[2])
_STDLIB = tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
_INSTALLED = re.compile(r"[\\/](site-packages|dist-packages)[\\/]")
_TYPED = ("<stdin>", "<ipython", "<cell")
SUSPENDABLE = (GeneratorType, CoroutineType, AsyncGeneratorType)


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A line of somebody's code."""

    path: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Local:
    """A local name of a running or suspended function."""

    name: str
    function: str
    own: bool
    path: str = ""
    suspended: bool = False
    in_thread: bool = False  # the function runs in another thread
    passing: bool = False  # the function is called anew in each step


@lru_cache(maxsize=4096)
def is_own(path: str) -> bool:
    """Say whether a file is the user's: not installed, not Python's, not leakcheck's."""
    if path.startswith("<"):  # made by exec: a dataclass's __init__, a compiled graph
        return path.startswith(_TYPED)
    if _INSTALLED.search(path):
        return False
    real = os.path.realpath(path)
    return not real.startswith((_PACKAGE + os.sep, *(each + os.sep for each in _STDLIB)))


def is_ours(code: CodeType) -> bool:
    """Say whether code is leakcheck's."""
    return code.co_filename.startswith(_PACKAGE + os.sep)


def own_caller(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's code, from `frame` outwards."""
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def every(but_thread: int = 0) -> Iterator[FrameType]:
    """Yield the frames that run in any thread, leakcheck's own included."""
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top if thread != but_thread else None
        while frame is not None:
            yield frame
            frame = frame.f_back


def running(suspended: Iterable[Any] = ()) -> Iterator[FrameType]:
    """Yield the program's frames in every thread, and those of the generators given."""
    yield from (frame for frame in every() if not is_ours(frame.f_code))
    for thing in suspended:
        frame = suspended_frame(thing)
        if frame is not None:
            yield frame


def namespaces(path: str) -> Iterator[dict[str, Any]]:
    """Yield the globals of the modules that were loaded from a file, given by its real path."""
    for file, namespace in _loaded():
        if os.path.basename(file) == os.path.basename(path) and os.path.realpath(file) == path:
            yield namespace


def own_source_has(word: str) -> bool:
    """Say whether a word is in the source of one of the user's modules."""
    return next(own_files_with(word), None) is not None


def own_files_with(word: str) -> Iterator[str]:
    """Yield the files of the user's modules that have a word in their source."""
    for file, _ in _loaded():
        own = file.endswith(".py") and is_own(file)
        if own and any(word in line for line in linecache.getlines(file)):
            yield file


def _loaded() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file and the globals of each module that has a file."""
    for module in list(sys.modules.values()):
        file = vars(module).get("__file__") if type(module) is ModuleType else None
        if type(file) is str:
            yield file, vars(module)


def suspended_frame(thing: Any) -> FrameType | None:
    """Return the frame of a generator, coroutine or async generator, None when it has ended."""
    if type(thing) is GeneratorType:
        return thing.gi_frame
    if type(thing) is CoroutineType:
        return thing.cr_frame
    return thing.ag_frame if type(thing) is AsyncGeneratorType else None


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Copy a function's locals; the module's or class's own namespace counts as no locals.

    Up to CPython 3.12 reading them leaves a dictionary behind in the frame that keeps every value
    alive until the function ends; it is emptied again unless the program holds it by locals().
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return {}
    snapshot = frame.f_locals
    copied = dict(snapshot)
    if isinstance(snapshot, dict) and sys.getrefcount(snapshot) <= 3:  # the frame, us, the call
        snapshot.clear()
    return copied


def local_values(suspended: Iterable[Any]) -> Iterator[Any]:
    """Yield everything that a running function names."""
    for frame in running(suspended):
        yield from locals_of(frame).values()


def named_values(
    suspended: Iterable[Any], called: Container[CodeType] = frozenset()
) -> dict[int, Local]:
    """Return id -> local name for everything a running function names; the user's names win.

    Of those the ones win that outlast a step: not of functions that were `called` within it. Else
    who holds a thing would depend on where in the step one looks.
    """
    found: dict[int, Local] = {}
    now = {id(frame) for frame in running()}
    elsewhere = {id(frame) for frame in every(but_thread=threading.get_ident())}
    for frame in running(suspended):
        waits, in_thread = id(frame) not in now, id(frame) in elsewhere
        function = frame.f_code.co_name
        path = frame.f_code.co_filename
        own, passing = is_own(path), not waits and frame.f_code in called
        for name, value in locals_of(frame).items():
            known = found.get(id(value))
            better = known is None or (own, not passing) > (known.own, not known.passing)
            if not name.startswith(".") and better:
                found[id(value)] = Local(name, function, own, path, waits, in_thread, passing)
    return found


def place(site: Site, share: float = 1.0) -> Place:
    """Return the site as reports show it: relative to the working directory, with its source."""
    return Place(shown(site.path), site.line, source_line(site), share, site.function)


def shown(path: str) -> str:
    """Return a path as reports show it."""
    return path.removeprefix(os.getcwd() + os.sep)


def source_line(site: Site) -> str:
    """Return the text of a site's line, "" when the source is not there."""
    return linecache.getline(site.path, site.line).strip()
