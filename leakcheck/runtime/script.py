"""Run a program as `__main__`, as `python` itself would: argv, sys.path, spec and exit status.

The program is compiled with ticks in its loops; its tracebacks show none of our frames.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from leakcheck.errors import UsageError
from leakcheck.runtime.clock import ticks


class StopRun(SystemExit):
    """Ends the program at a step boundary, like sys.exit(): its finally and atexit still run."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a file and its arguments, with the module spec if it was named by `-m`."""

    path: Path
    argv: tuple[str, ...]
    spec: ModuleSpec | None = None

    @property
    def folder(self) -> Path:
        """Where the user's own files are."""
        return Path.cwd() if self.spec is not None else self.path.parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the program ended: its exit status, and "stopped" when it was us who ended it."""

    status: int
    ended: str  # "exit", "stopped", "error", "interrupted"


def find_script(script: str, args: tuple[str, ...]) -> Program:
    """Find a script, or the `__main__.py` of a folder; UsageError when there is none."""
    path = Path(script)
    if path.is_dir():
        path = path / "__main__.py"
    if not path.is_file():
        raise UsageError(f"{script}: no such file")
    return Program(Path(os.path.abspath(path)), (script, *args))


def find_module(name: str, args: tuple[str, ...]) -> Program:
    """Find a module as `python -m` does; UsageError when it cannot be run."""
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError, AttributeError) as error:
        raise UsageError(f"no module named {name}: {error}") from None
    finally:
        del sys.path[0]
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(f"no module named {name} that can be run")
    return Program(Path(spec.origin), (spec.origin, *args), spec)


def run_program(program: Program) -> Outcome:
    """Run the program to its end, and wait for the threads it leaves behind."""
    main = _main_module(program)
    sys.argv[:] = program.argv
    folder = os.path.realpath(program.path.parent) if program.spec is None else os.getcwd()
    sys.path[0:1] = [folder]
    sys.modules["__main__"] = main
    ticks.install(Path(os.path.realpath(program.folder)))
    try:
        exec(_code(program), main.__dict__)
        _join_threads()
    except StopRun:
        return Outcome(0, "stopped")
    except SystemExit as exit:
        return Outcome(0, "stopped") if _by_our_stop(exit) else Outcome(_status(exit), "exit")
    except KeyboardInterrupt:
        return Outcome(130, "interrupted")
    except BaseException as error:
        if _by_our_stop(error):
            return Outcome(0, "stopped")
        _show(error)
        return Outcome(1, "error")
    return Outcome(0, "exit")


def _by_our_stop(error: BaseException) -> bool:
    """Say whether the program raised `error` while it handled the exception that we stop it by."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, StopRun):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def before_os_exit(act: Callable[[], int | None]) -> None:
    """Call `act` before the program leaves by os._exit(0); its answer becomes the status."""
    leave, pid = os._exit, os.getpid()

    def leave_after_report(status: int) -> None:
        if os.getpid() == pid:
            answer = act()
            if status == 0 and answer:
                status = answer
        leave(status)

    os._exit = leave_after_report  # type: ignore[assignment]


def _main_module(program: Program) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    main.__file__ = str(program.path)
    main.__spec__ = program.spec
    main.__loader__ = SourceFileLoader("__main__", str(program.path))
    if program.spec is not None:
        main.__package__ = program.spec.parent
    ticks.give_names(main.__dict__)
    return main


def _code(program: Program) -> CodeType:
    return ticks.compile_with_ticks(program.path.read_bytes(), str(program.path))


def _join_threads() -> None:
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()


def _status(exit: SystemExit) -> int:
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 0xFF
    print(exit.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in _OUR_FRAMES:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


# a syntax error is raised inside ast.parse, called by us
_OUR_FRAMES = (__file__, ticks.__file__, ast.__file__)
