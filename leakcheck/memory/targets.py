"""Run what a prediction is asked for: a script, `module:function` or `file.py:function`.

A script ends after the optimizer steps that were asked for; a function makes its steps itself or
returns a callable that makes one.
"""

from __future__ import annotations

import ast
import inspect
import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from leakcheck.errors import LeakcheckError, UsageError
from leakcheck.memory.prediction import Request
from leakcheck.memory.simulate import SimulatedDevice


class Enough(BaseException):
    """Ends a script after the steps that were asked for; no `except Exception` stops it."""


class EndedBeforeDevice(LeakcheckError):
    """The program ended itself with an error status before it used the device."""


def run(request: Request, device: SimulatedDevice) -> None:
    """Run the target with a device it takes for a GPU. Raises what the program raises."""
    place, colon, function = request.target.rpartition(":")
    counter = _StepCounter(device, request.steps)
    if colon and function.isidentifier():
        _run_function(_load(place), function, request, counter)
    else:
        _run_script(request, counter, device)
    device.end_pages()


class _StepCounter:
    """Starts the ledger one step before the last, and ends a script after it."""

    def __init__(self, device: SimulatedDevice, steps: int) -> None:
        self._device = device
        self._steps = steps
        self.ends_program = False
        register_optimizer_step_post_hook(self._after)

    @property
    def more(self) -> bool:
        return self._device.steps < self._steps

    def _after(self, optimizer: torch.optim.Optimizer, *rest: object) -> None:
        self._device.after_optimizer(optimizer, *rest)
        if self._device.steps == self._steps - 1:
            self._device.begin_pages()
        if self.ends_program and not self.more:
            raise Enough


def _run_function(module: ModuleType, name: str, request: Request, counter: _StepCounter) -> None:
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f'{request.target}: there is no function "{name}"')
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise UsageError(f"{request.target}: a coroutine or generator function cannot be called so")
    step = function(**_keywords(function, request))
    if not callable(step):
        return
    calls = 0
    while counter.more and calls < request.steps:
        step()
        calls += 1


def _keywords(function: Callable[..., Any], request: Request) -> dict[str, object]:
    parameters = inspect.signature(function).parameters
    offered: dict[str, object] = {"device": "cuda"}
    if request.batch_size is not None:
        if "batch_size" not in parameters:
            raise UsageError(
                f"{request.target}: the function takes no batch_size; give it that parameter, as "
                f"`def {request.target.rpartition(':')[2]}(device, batch_size)`"
            )
        offered["batch_size"] = request.batch_size
    given = _given(request)
    open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = [name for name in given if name not in parameters]
    if unknown and not open_ended:
        raise UsageError(f"{request.target}: the function takes no {', '.join(unknown)}")
    offered |= given
    needed = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name not in offered
    ]
    if needed:
        raise UsageError(
            f"{request.target}: the function needs {', '.join(needed)}; "
            "besides device and --batch-size, give it NAME=VALUE after the target"
        )
    return {n: value for n, value in offered.items() if n in parameters or n in given}


def _given(request: Request) -> dict[str, object]:
    """The NAME=VALUE arguments; a value that is no Python literal is text."""
    given: dict[str, object] = {}
    for argument in request.arguments:
        name, equals, text = argument.partition("=")
        if not (equals and name.isidentifier()):
            raise UsageError(f'{request.target}: a function takes NAME=VALUE, not "{argument}"')
        try:
            given[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            given[name] = text
    return given


def _run_script(request: Request, counter: _StepCounter, device: SimulatedDevice) -> None:
    counter.ends_program = True
    path = Path(request.target)
    sys.argv = [request.target, *request.arguments]
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Enough:
        return
    except SystemExit as left:
        if left.code in (None, 0):
            return
        told = f"the program ended itself with {left.code!r}"
        if not device.events:
            raise EndedBeforeDevice(f"{request.target}: {told} before it used the device") from None
        device.note_once(told)


def _load(place: str) -> ModuleType:
    path = Path(place)
    if path.suffix != ".py":
        sys.path.insert(0, str(Path.cwd()))
        try:
            return import_module(place)
        except ModuleNotFoundError as error:
            raise UsageError(f"{place}: {error}") from None
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{place}: cannot be loaded")
    sys.path.insert(0, str(path.parent.resolve()))
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
