"""Run a program as `__main__`, as `python` itself would: argv, sys.path, spec and exit status.

The program is compiled with ticks in its loops; its tracebacks show none of our frames.
"""

from __future__ import annotations

import ast
import atexit
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, NoReturn

from leakcheck.errors import UsageError
from leakcheck.projects import own_folder
from leakcheck.runtime.clock import ticks
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.texts import file_of, text_of
from leakcheck.source.conditions import is_caught_at

if TYPE_CHECKING:
    from logging import LogRecord


class StopRun(SystemExit):
    """Ends the program at a step boundary, like sys.exit(): its finally and atexit still run."""


def would_be_caught() -> bool:
    """Say whether the program would catch what is to end it: then an iteration would be lost."""
    running = ((each.f_code.co_filename, each.f_lineno or 0) for each in frames.running())
    return any("except" in text_of(at) and is_caught_at(file_of(at), n) for at, n in running)


def stop_run() -> NoReturn:
    """End the program here; of the tasks that it ends in, asyncio is not to say a word."""
    if "asyncio" in sys.modules:
        logging = sys.modules["logging"]  # asyncio imports it
        logging.getLogger("asyncio").addFilter(_tells_of_program)
    raise StopRun(0)


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a file and its arguments, with the module spec if it was named by `-m`."""

    path: Path
    argv: tuple[str, ...]
    spec: ModuleSpec | None = None

    @property
    def folder(self) -> Path:
        """Where the user's own files are: in the project around the script."""
        around = Path.cwd() if self.spec is not None else self.path.parent
        return Path(own_folder(os.path.realpath(around)))


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How the program ended: its exit status, and "stopped" when it was us who ended it.

    What interrupted it is kept: it is shown once the report is out.
    """

    status: int
    ended: str  # "exit", "stopped", "error", "out of memory", "interrupted", "terminated"
    interrupt: KeyboardInterrupt | None = None


def find_script(script: str, args: tuple[str, ...]) -> Program:
    """Find a script, or the `__main__.py` of a folder; UsageError when there is none."""
    path = Path(script)
    if path.is_dir():
        path = path / "__main__.py"
    if not path.is_file():
        reason = "a folder without __main__.py" if Path(script).is_dir() else "no such file"
        raise UsageError(f"{script}: {reason}")
    return Program(Path(os.path.abspath(path)), (script, *args))


def find_module(name: str, args: tuple[str, ...]) -> Program:
    """Find a module as `python -m` does; UsageError when it cannot be run."""
    begin = [] if _safe_path() else [os.getcwd()]
    sys.path[0:0] = begin
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError, AttributeError) as error:
        raise UsageError(f"no module named {name}: {error}") from None
    finally:
        del sys.path[: len(begin)]
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(f"no module named {name} that can be run")
    return Program(Path(spec.origin), (spec.origin, *args), spec)


def run_program(program: Program) -> ProgramEnd:
    """Run the program to its end, and wait for the threads it leaves behind."""
    main = _main_module(program)
    sys.argv[:] = program.argv
    folder = os.path.realpath(program.path.parent) if program.spec is None else os.getcwd()
    if not _safe_path():
        sys.path[0:1] = [folder]
    sys.modules["__main__"] = main
    ticks.install(program.folder)
    try:
        code = ticks.compile_with_ticks(program.path.read_bytes(), str(program.path))
        exec(code, main.__dict__)
        _join_threads()
    except StopRun:
        return ProgramEnd(0, "stopped")
    except SystemExit as exit:
        return ProgramEnd(0, "stopped") if _by_our_stop(exit) else ProgramEnd(_status(exit), "exit")
    except KeyboardInterrupt as error:
        caught = error.with_traceback(_until_ours(_theirs(error.__traceback__)))
        return ProgramEnd(128 + signal.SIGINT, "interrupted", caught)
    except BaseException as error:
        if _by_our_stop(error):
            return ProgramEnd(0, "stopped")
        return ProgramEnd(_show(error), "out of memory" if _is_out_of_memory(error) else "error")
    return ProgramEnd(0, "exit")


def end_as_python_does() -> None:
    """Do what Python does after a program's last line: wait for threads, call what is to run.

    None of it is done a second time when the process ends.
    """
    _join_threads()
    atexit._run_exitfuncs()


def _safe_path() -> bool:
    """Say whether Python puts no folder before the others (`-P`, PYTHONSAFEPATH)."""
    return bool(getattr(sys.flags, "safe_path", False))


def _is_out_of_memory(error: BaseException) -> bool:
    kind = getattr(sys.modules.get("torch"), "OutOfMemoryError", MemoryError)
    return isinstance(error, (MemoryError, kind))


def _tells_of_program(record: LogRecord) -> bool:
    """Say whether what is logged is no task that our stop ended and that nobody awaits any more."""
    error = record.exc_info[1] if record.exc_info else None
    return error is None or not _by_our_stop(error)


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


def before_os_exit(act: Callable[[int], int]) -> None:
    """Call `act` with the status before the program leaves by os._exit; it answers with another."""
    leave, pid = os._exit, os.getpid()

    def leave_after_report(status: int) -> None:
        if os.getpid() == pid:
            with suppress(Exception):  # whatever goes wrong here, the program leaves
                status = act(status & 0xFF)
        leave(status)

    os._exit = leave_after_report  # type: ignore[assignment]


def _main_module(program: Program) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    main.__file__ = str(program.path)
    main.__spec__ = program.spec
    main.__loader__ = SourceFileLoader("__main__", str(program.path))
    if sys.version_info < (3, 15):
        main.__dict__["__cached__"] = program.spec.cached if program.spec is not None else None
    if "__annotations__" in vars(sys.modules["__main__"]):  # not from Python 3.14 on
        main.__annotations__ = {}
    if program.spec is not None:
        main.__package__ = program.spec.parent
    ticks.give_names(main.__dict__)
    return main


def _join_threads() -> None:
    if getattr(threading, "_threading_atexits", ()):  # executors, whose threads wait to be told
        # the report asks for it, and it cannot be imported once executors have been stopped
        import concurrent.futures.process  # noqa: F401

        threading._shutdown()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()


def _status(exit: SystemExit) -> int:
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 0xFF
    _print(exit.code)
    return 1


def _show(error: BaseException) -> int:
    try:
        show(error)
    except SystemExit as exit:
        return _status(exit)
    return 1


def show(error: BaseException) -> None:
    """Have the program's hook show what ended it, as Python does; SystemExit is the hook's."""
    shown = error.with_traceback(_theirs(error.__traceback__))
    try:
        sys.excepthook(type(shown), shown, shown.__traceback__)
    except SystemExit:
        raise
    except BaseException as failed:
        _print("Error in sys.excepthook:")
        failed = failed.with_traceback(_theirs(failed.__traceback__))
        failed.__suppress_context__ = failed.__cause__ is None
        sys.__excepthook__(type(failed), failed, failed.__traceback__)
        _print("\nOriginal exception was:")
        sys.__excepthook__(type(shown), shown, shown.__traceback__)


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename in _OUR_FRAMES:
        trace = trace.tb_next
    return trace


def _until_ours(trace: TracebackType | None) -> TracebackType | None:
    """Cut a traceback where the program was in a function of ours, as at the end of a step."""
    shown = []
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER):
        shown.append(trace)
        trace = trace.tb_next
    inner: TracebackType | None = None
    for each in reversed(shown):
        inner = TracebackType(inner, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return inner


def _print(text: object) -> None:
    """Write to the program's standard error, as Python does; it may have closed it."""
    if sys.stderr is not None:
        with suppress(Exception):
            print(text, file=sys.stderr, flush=True)


_OUR_FOLDER = os.path.join(os.path.dirname(__file__), "")
# a syntax error is raised inside ast.parse, called by us
_OUR_FRAMES = (__file__, ticks.__file__, ast.__file__)
