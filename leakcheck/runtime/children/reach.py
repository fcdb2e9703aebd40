"""Reach each process that the program starts, as coverage.py does, with no change to it.

A forked child, before its own function, calls what was given to
`multiprocessing.util.register_after_fork`. A spawned child, and one of the fork server, is a new
interpreter, which does so too; what it has to be told first goes with the data by which
multiprocessing prepares it. That data gets one entry more: a call that is made as it is unpickled,
before the program's `__main__` is imported once more, so that its loops tick. Both ends are
multiprocessing's own: no frame of ours is on the stack while the child's function runs, and its
tracebacks, pickles, start method and exit status stay what they are. Where leakcheck cannot be
imported, or fails, the child runs unwatched.

A child that the program forks itself is reached by `os.register_at_fork`. One that feeds a training
(a DataLoader's worker, a manager's server) is left alone: nothing is imported or registered in it.
So is what `subprocess` starts.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from leakcheck.runtime.children.watch import ChildOrder, begin_watch
from leakcheck.runtime.clock import ticks
from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.introspection import frames

NO_TRAININGS = ("torch.utils.data.", "multiprocessing.managers")  # modules of their functions
ENTRY = "leakcheck"
# of a function in a spawned child; what goes wrong in it leaves the child unwatched
CALL = """\
import sys
sys.path.append({folder!r})
try:
    from leakcheck.runtime.children.reach import arrive
    arrive({order!r})
except Exception:
    pass
finally:
    if {folder!r} in sys.path:
        sys.path.remove({folder!r})
"""
_FOLDER = str(Path(__file__).parents[3])


class Reach:
    """Has `begin` called in each child process that may train; kept as long as children start."""

    def __init__(self, order: ChildOrder) -> None:
        self.order = order
        self._begun_in = os.getpid()  # and in no process twice
        self._forked = 0  # by lines of the user's own
        self._forks_itself = False  # now

    def install(self) -> None:
        """Reach the children that this process starts from now on."""
        when_loaded("multiprocessing.util", self._reach_forked)
        if not _is_imported_anew():
            when_loaded("multiprocessing.spawn", self._reach_spawned)
        os.register_at_fork(before=self._note_fork, after_in_child=self._begin_itself)

    def _reach_forked(self, util: ModuleType) -> None:
        util.register_after_fork(self, Reach._begin)

    def _begin(self) -> None:
        process = _current_process()
        if may_train(process) and self._begun_in != os.getpid():
            self._begun_in = os.getpid()
            if (spawn := sys.modules.get("multiprocessing.spawn")) is not None:
                self._reach_spawned(spawn)
            begin_watch(self.order, process.name, process)

    def _note_fork(self) -> None:
        """Before a fork: see whether a line of the user's makes it, and count it if so.

        multiprocessing tells of its children itself, and of subprocess's nothing is to be watched.
        """
        self._forks_itself = False
        with suppress(ValueError):  # no line of Python's forks
            self._forks_itself = frames.is_own(sys._getframe(1).f_code.co_filename)
            self._forked += self._forks_itself

    def _begin_itself(self) -> None:
        if self._forks_itself and self._begun_in != os.getpid():
            self._begun_in = os.getpid()
            begin_watch(self.order, f"fork {self._forked}")

    def _reach_spawned(self, spawn: ModuleType) -> None:
        prepare: Any = spawn.get_preparation_data
        if getattr(prepare, "reach", None) is None:
            spawn.get_preparation_data = _with_entry(prepare, self)  # type: ignore[attr-defined]


class ExecutedText:
    """Pickled, it is a call of `exec`: it needs nothing of ours where it is unpickled."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str, dict[str, object]]]:
        return exec, (self._source, {})


def _with_entry(prepare: Callable[[str], dict[str, Any]], reach: Reach) -> Callable[[str], Any]:
    """Add our call to the data that prepares a spawned child.

    In a child this is in place once its `__main__` was imported: until then `prepare` may raise,
    and the traceback is the program's.
    """

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = prepare(name)
        if may_train(sys._getframe(1).f_locals.get("process_obj")):
            data[ENTRY] = ExecutedText(CALL.format(folder=_FOLDER, order=asdict(reach.order)))
        return data

    get_preparation_data.reach = reach  # type: ignore[attr-defined]
    return get_preparation_data


def arrive(order: dict[str, Any]) -> None:
    """Begin in a spawned child, before its `__main__` is imported."""
    reach = Reach(ChildOrder(**order))
    reach._begun_in = 0
    ticks.install(Path(reach.order.own))
    _tick_in_script(reach.order.program)
    _reaches.append(reach)
    reach.install()
    _begin_after_spawn(reach)


def _begin_after_spawn(reach: Reach) -> None:
    # from Python 3.11 on a spawned process passes over what is to be called after a fork
    from multiprocessing.context import SpawnProcess

    after_fork: Any = SpawnProcess._after_fork  # type: ignore[attr-defined]

    def settle_and_begin() -> None:
        after_fork()
        reach._begin()

    SpawnProcess._after_fork = staticmethod(settle_and_begin)  # type: ignore[attr-defined]


def _tick_in_script(program: str) -> None:
    """Have the script compiled with ticks when `runpy` reads it to be `__main__` once more."""
    read: Any = runpy._get_code_from_file  # type: ignore[attr-defined]

    def read_with_ticks(*args: Any) -> Any:
        found = read(*args)
        if args[-1] != program:
            return found
        runpy._get_code_from_file = read  # type: ignore[attr-defined]
        try:
            code = ticks.compile_with_ticks(Path(program).read_bytes(), program)
        except Exception:
            return found
        return (code, *found[1:]) if isinstance(found, tuple) else code  # one from Python 3.12 on

    runpy._get_code_from_file = read_with_ticks  # type: ignore[attr-defined]


def may_train(process: Any) -> bool:
    """Say whether a process is started for the program's own work."""
    function = getattr(process, "_target", None)
    module = getattr(function, "__module__", None) or ""
    return process is not None and not module.startswith(NO_TRAININGS)


def _is_imported_anew() -> bool:
    """Say whether this is a spawned child whose `__main__` is still to be imported."""
    return getattr(_current_process(), "_inheriting", False)


def _current_process() -> Any:
    module = sys.modules.get("multiprocessing.process")
    return module.current_process() if module is not None else None


_reaches: list[Reach] = []  # multiprocessing refers to them weakly
