"""The predictor's own process: `python -m leakcheck.memory.predict_worker REQUEST ANSWER`.

Reads a request as JSON from one file, runs the target on the simulated device, and writes the
prediction, or the error, as JSON to the other. Whatever the target prints stays out of both.
"""

from __future__ import annotations

import inspect
import runpy
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from leakcheck.errors import LeakcheckError, UsageError
from leakcheck.memory import cuda_names, fake_device
from leakcheck.memory.policies import POLICIES
from leakcheck.memory.prediction import Prediction, Request
from leakcheck.memory.profiles import profile
from leakcheck.memory.simulate import SimulatedDevice


class Enough(BaseException):
    """Ends a script after the steps that were asked for; no `except Exception` stops it."""


def main(request_path: str, answer_path: str) -> None:
    """Answer one request."""
    request = msgspec.json.decode(Path(request_path).read_bytes(), type=Request)
    answer: dict[str, object]
    try:
        answer = {"prediction": msgspec.to_builtins(predict_here(request))}
    except LeakcheckError as error:
        answer = {"error": str(error)}
    except BaseException as error:
        answer = {"error": _told(error, request.target), "retry": not request.on_cpu}
    Path(answer_path).write_bytes(msgspec.json.encode(answer))


def predict_here(request: Request) -> Prediction:
    """Run the target in this process and return what it would need."""
    device_profile = profile(request.device)
    allocator = POLICIES[request.policy](None)
    if not request.on_cpu:
        fake_device.set_up(device_profile)
    device = SimulatedDevice(device_profile, allocator, request.workspace_bytes)
    if request.on_cpu:
        device.device_type = "cpu"
        device.note_once("the step ran on the host, with its kernels instead of the device's")
    import_module("torch._dynamo")  # reads torch's functions, so before they are translated
    cuda_names.install(device)
    register_optimizer_step_pre_hook(device.before_optimizer)
    _note_what_is_not_modelled(device)
    with ExitStack() as stack:
        if not request.on_cpu:
            stack.enter_context(fake_device.FakeMode(allow_non_fake_inputs=True))
        stack.enter_context(device)
        _run(request, device)
    if not device.events:
        raise UsageError(f"{request.target}: the program put no tensor on a CUDA device")
    steps = device.steps
    if steps < request.steps:
        device.note_once(f"only {steps} of {request.steps} optimizer steps were made")
    return Prediction(
        device=device_profile.key,
        mode="cpu" if request.on_cpu else "fake",
        steps=steps,
        peak_allocated_bytes=allocator.peak_allocated_bytes,
        peak_reserved_bytes=allocator.peak_reserved_bytes,
        context_bytes=device_profile.context_bytes,
        memory_bytes=device_profile.memory_bytes,
        phase_peaks=device.peaks,
        pages=tuple(device.pages),
        notes=tuple(device.notes),
        batch_size=request.batch_size,
    )


def _note_what_is_not_modelled(device: SimulatedDevice) -> None:
    """Widen the interval for cuDNN's recurrent kernels and for compiled code, run eagerly here."""

    def look(module: torch.nn.Module, *_: object) -> None:
        if isinstance(module, torch.nn.RNNBase):
            device.note_once("cuDNN's recurrent kernels keep other buffers than these")

    def uncompiled(model: Any = None, **_: object) -> Any:
        device.note_once(uncompiled_note)
        return model if model is not None else lambda function: function

    def stay_eager(module: torch.nn.Module, *_: object, **__: object) -> None:
        device.note_once(uncompiled_note)

    uncompiled_note = "torch.compile's code reuses buffers; the program ran uncompiled"
    torch.nn.modules.module.register_module_forward_pre_hook(look)
    torch.compile = uncompiled
    torch.nn.Module.compile = stay_eager  # type: ignore[method-assign,assignment]


def _run(request: Request, device: SimulatedDevice) -> None:
    place, colon, function = request.target.rpartition(":")
    counter = _StepCounter(device, request.steps)
    if colon and function.isidentifier():
        _run_function(_load(place), function, request, counter)
    else:
        _run_script(request, counter)
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
            raise UsageError(f"{request.target}: the function takes no batch_size")
        offered["batch_size"] = request.batch_size
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
            "it may take device and batch_size, and nothing else without a default"
        )
    return {name: value for name, value in offered.items() if name in parameters}


def _run_script(request: Request, counter: _StepCounter) -> None:
    counter.ends_program = True
    path = Path(request.target)
    sys.argv = [request.target, *request.arguments]
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except (Enough, SystemExit):
        return


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


def _told(error: BaseException, target: str) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "leakcheck" not in frame.filename]
    user = [frame for frame in own if "site-packages" not in frame.filename] or own
    where = f"{user[-1].filename}:{user[-1].lineno}" if user else target
    return f"{where}: {type(error).__name__}: {text[:300]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
