"""Whose code a frame runs, and what the local names of the running functions hold.

A local of a running function is no gc referrer on CPython 3.11 and later, so the frames of this
thread and of every suspended generator are roots of their own. No frame is read that another thread
runs.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
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
from typing import Any, NamedTuple

from leakcheck.model import Place
from leakcheck.runtime.introspection.local_names import locals_of

_PACKAGE = str(Path(__file__).parents[2])
_STDLIB = tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
_IN_PYTHON = tuple(each + os.sep for each in _STDLIB)
_INSTALLED = re.compile(r"[\\/](site-packages|dist-packages)[\\/]")
_TYPED = ("<stdin>", "<ipython", "<cell")
SUSPENDABLE = (GeneratorType, CoroutineType, AsyncGeneratorType)


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A line of somebody's code."""

    path: str
    line: int
    function: str = ""


class Local(NamedTuple):
    """A local name of a running or suspended function."""

    name: str
    function: str
    own: bool
    path: str = ""
    suspended: bool = False
    passing: bool = False  # the function is called anew in each step


@lru_cache(maxsize=4096)
def is_own(path: str) -> bool:
    """Say whether a file is the user's: not installed, not Python's, not leakcheck's."""
    if path.startswith("<"):  # made by exec: a dataclass's __init__, a compiled graph
        return path.startswith(_TYPED)
    if _INSTALLED.search(path):
        return False
    real = os.path.realpath(path)
    theirs = real.startswith((_PACKAGE + os.sep, *_IN_PYTHON))
    return not theirs and not any(_is_installed(real, str(entry)) for entry in sys.path)


def is_of_python(path: str) -> bool:
    """Say whether a file is of the standard library."""
    return os.path.realpath(path).startswith(_IN_PYTHON) and not _INSTALLED.search(path)


def _is_installed(path: str, entry: str) -> bool:
    folder = os.path.realpath(entry) + os.sep
    return path.startswith(folder) and path[len(folder) :].split(os.sep)[0] in _installed_in(folder)


@lru_cache(maxsize=64)
def _installed_in(folder: str) -> frozenset[str]:
    """Return what `pip install --target` put into a folder, by the records that it leaves there."""
    names: set[str] = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with suppress(OSError, UnicodeDecodeError):
            names |= {
                row.partition("/")[0].partition(",")[0] for row in record.read_text().splitlines()
            }
    return frozenset(names)


def is_ours(code: CodeType) -> bool:
    """Say whether code is leakcheck's."""
    return code.co_filename.startswith(_PACKAGE + os.sep)


def own_caller(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's code, from `frame` outwards."""
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def running() -> Iterator[FrameType]:
    """Yield the program's frames that run in this thread.

    Not those of other threads: while such a frame is held, what it names outlives its end.
    """
    return (frame for frame in stack() if not is_ours(frame.f_code))


def stack() -> Iterator[FrameType]:
    """Yield the frames that run in this thread, the innermost first, leakcheck's own included."""
    yield from outwards(sys._getframe(1))


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers', the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def codes_elsewhere() -> list[CodeType]:
    """Return the code that the other threads run, the innermost of each first."""
    own = threading.get_ident()
    # in no variable: it has this very frame in it, and what a cycle keeps waits for a collection
    return [
        each.f_code
        for thread, frame in sys._current_frames().items()
        if thread != own
        for each in outwards(frame)
    ]


def own_codes_elsewhere() -> list[CodeType]:
    """Return the user's functions that other threads are in."""
    return [code for code in codes_elsewhere() if is_own(code.co_filename)]


def own_functions_elsewhere() -> tuple[str, ...]:
    """Return the names of these functions, sorted."""
    return tuple(sorted({code.co_name for code in own_codes_elsewhere()}))


def namespaces(path: str) -> Iterator[dict[str, Any]]:
    """Yield the globals of the modules that were loaded from a file, given by its real path."""
    for file, namespace in _loaded():
        if os.path.basename(file) == os.path.basename(path) and os.path.realpath(file) == path:
            yield namespace


def own_files_with(word: str) -> Iterator[str]:
    """Yield the files of the user's modules that have a word in their source."""
    for file, _ in _loaded():
        own = file.endswith(".py") and is_own(file)
        if own and any(word in line for line in linecache.getlines(file)):
            yield file


def _loaded() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file and the globals of each module that has a file and is not leakcheck's."""
    for name, module in list(sys.modules.items()):
        if type(name) is str and name.startswith("leakcheck."):
            continue
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


def _is_running(thing: Any) -> bool:
    if type(thing) is GeneratorType:
        return thing.gi_running
    if type(thing) is CoroutineType:
        return thing.cr_running
    # it is said to run also while it awaits
    return type(thing) is AsyncGeneratorType and thing.ag_running and thing.ag_await is None


def local_values(suspended: Iterable[Any]) -> Iterator[Any]:
    """Yield everything that a function of this thread names, running or suspended."""
    for frame, owner in _readable(suspended):
        yield from locals_of(frame, owner).values()


def named_values(
    suspended: Iterable[Any], called: Container[CodeType] = frozenset()
) -> dict[int, Local]:
    """Return id -> local name for everything such a function names; the user's names win.

    Of those the ones win that outlast a step: not of functions that were `called` within it. Else
    who holds a thing would depend on where in the step one looks.
    """
    found: dict[int, Local] = {}
    for frame, owner in _readable(suspended):
        function, path = frame.f_code.co_name, frame.f_code.co_filename
        own, passing = is_own(path), owner is None and frame.f_code in called
        for name, value in locals_of(frame, owner).items():
            known = found.get(id(value))
            better = known is None or (own, not passing) > (known.own, not known.passing)
            if not name.startswith(".") and better:
                waits = owner is not None
                found[id(value)] = Local(name, function, own, path, waits, passing)
    return found


def _readable(suspended: Iterable[Any]) -> Iterator[tuple[FrameType, Any]]:
    here = list(running())
    for frame in here:
        yield frame, None
    ids = set(map(id, here))
    for thing in suspended:
        its_own = suspended_frame(thing)
        if its_own is not None and (id(its_own) in ids or not _is_running(thing)):
            yield its_own, thing


def place(site: Site, share: float = 1.0) -> Place:
    """Return the site as reports show it: relative to the working directory, with its source."""
    return Place(shown(site.path), site.line, source_line(site), share, site.function)


def shown(path: str) -> str:
    """Return a path as reports show it, from the working folder on if that is still there."""
    try:
        return path.removeprefix(os.getcwd() + os.sep)
    except FileNotFoundError:
        return path


def source_line(site: Site) -> str:
    """Return the text of a site's line, "" when the source is not there."""
    return linecache.getline(site.path, site.line).strip()
