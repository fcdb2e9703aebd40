"""The process that trials are forked from: it has imported what the program imports first.

To import torch, and what an optimizer imports as it is made, takes 1.9 s; a fork takes 20 ms. The
parent sends orders, one a line, and gets the id of each fork, then its exit status. Where a fork
would not be what a fresh process is, the first answer says so and nothing is forked.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
from pathlib import Path

import msgspec

from leakcheck.cli import tried
from leakcheck.cure.beginning import BeginningAct, Imported, beginning
from leakcheck.cure.witness import Witness
from leakcheck.errors import LeakcheckError
from leakcheck.projects import own_folder
from leakcheck.runtime.clock.ticks import is_own
from leakcheck.static.files import decode

READY = "ready"


class Opening(msgspec.Struct, frozen=True):
    """The program that is forked: its arguments, or a module's name and its arguments."""

    args: tuple[str, ...]
    module: str | None = None


class ForkOrder(msgspec.Struct, frozen=True):
    """A trial, and the files that its standard output and error go to."""

    trial: tried.TrialOrder
    stdout: str
    stderr: str


def main() -> None:
    """Import what the first argument's program does first, then fork for each order."""
    opening = msgspec.convert(json.loads(sys.argv[1]), Opening)
    orders, answers = os.dup(0), os.dup(1)
    for number in (0, 1):  # neither what is imported nor a fork may speak to the parent
        _redirect(number, os.devnull, os.O_RDWR)
    script = opening.args[0] if opening.module is None else ""
    folder = os.path.dirname(os.path.realpath(_main_file(script))) if script else os.getcwd()
    sys.path[0:1] = [folder]
    witness = Witness()
    witness.start()
    reason = _load(_acts(opening, folder)) or _unsafe(Path(own_folder(folder)))
    os.write(answers, f"{reason or READY}\n".encode())
    if not reason:
        gc.collect()
        gc.freeze()
        _serve(orders, answers, witness)


def _serve(orders: int, answers: int, witness: Witness) -> None:
    with open(orders, encoding="utf-8") as lines:
        for line in lines:
            pid = os.fork()
            if not pid:
                lines.close()
                os.close(answers)
                _run(msgspec.json.decode(line, type=ForkOrder), witness)
            os.write(answers, f"{pid}\n".encode())
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(answers, f"{status}\n".encode())


def _run(order: ForkOrder, witness: Witness) -> None:
    os.setsid()
    for number, path in ((1, order.stdout), (2, order.stderr)):
        _redirect(number, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if not order.trial.frozen:
        gc.unfreeze()
    tried.run(order.trial, witness)


def _redirect(number: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o666)
    os.dup2(opened, number)
    os.close(opened)


def _acts(opening: Opening, folder: str) -> list[BeginningAct]:
    """Return what the program does first, nothing where its text cannot be read."""
    texts = _own_texts(opening.module, folder) if opening.module is not None else []
    if not texts:  # an installed module, such as pytest, loads the file that it is given
        files = (each.partition("::")[0] for each in opening.args)
        script = next((each for each in files if each.endswith(".py")), "")
        script = opening.args[0] if opening.module is None else script
        texts = [_text(_main_file(script)) or ""]
    return beginning("\n".join(texts), lambda name: _own_texts(name, folder))


def _main_file(script: str) -> str:
    return os.path.join(script, "__main__.py") if os.path.isdir(script) else script


def _own_texts(name: str, folder: str) -> list[str]:
    """Return the texts of the user's files that are loaded when a module is imported."""
    found: list[str] = []
    at = folder
    for part in name.split("."):
        at = os.path.join(at, part)
        for path in (os.path.join(at, "__init__.py"), f"{at}.py", os.path.join(at, "__main__.py")):
            text = _text(path) if is_own(path, Path(folder)) else None
            if text is not None:
                found.append(text)
                break
    return found


def _text(path: str) -> str | None:
    try:
        return decode(Path(path).read_bytes()).text
    except (OSError, LeakcheckError):
        return None


def _load(acts: list[BeginningAct]) -> str:
    """Do what the program does first; say what went wrong, "" if nothing did."""
    for act in acts:
        if not isinstance(act, Imported):
            if act.default:
                os.environ.setdefault(act.name, act.value)
            else:
                os.environ[act.name] = act.value
            continue
        try:
            importlib.import_module(act.name)
        except BaseException as error:  # the program will meet it itself
            return f"import {act.name}: {type(error).__name__}"
    return ""


def _unsafe(folder: Path) -> str:
    """Say why a fork of this process would not be what a fresh process is, "" if it would."""
    files = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
    if any(type(path) is str and is_own(path, folder) for path in files):
        return "a module of the user's is loaded"
    if threading.active_count() > 1:
        return "an import has started a thread"
    if _probed():
        return "a device is in use"
    # OpenBLAS ends its threads before each fork, and starts them anew; nobody else does
    if len(os.listdir("/proc/self/task")) > 1:
        return "an import has started a thread"
    return ""


def _probed() -> bool:
    """Fork once, and say whether CUDA could not be used in the fork."""
    pid = os.fork()
    if not pid:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        os._exit(int(cuda is not None and cuda._is_in_bad_fork()))
    return os.waitpid(pid, 0)[1] != 0
