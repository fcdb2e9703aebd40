"""The predictor's own process: `main(REQUEST, ANSWER)`.

Reads a request as JSON from one file, runs the target on the simulated device, and writes the
prediction, or the error, as JSON to the other. Whatever the target prints stays out of both.
"""

from __future__ import annotations

import traceback
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from leakcheck.errors import LeakcheckError, UsageError
from leakcheck.memory import cuda_names, cuda_silent, fake_device, one_process
from leakcheck.memory.policies import POLICIES
from leakcheck.memory.prediction import Prediction, Request
from leakcheck.memory.profiles import profile
from leakcheck.memory.simulate import SimulatedDevice
from leakcheck.memory.targets import EndedBeforeDevice, run

# a real step on the host would fail on these, too
_FINAL_ERRORS = (ImportError, SyntaxError, OSError, EOFError)
_LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def main(request_path: str, answer_path: str) -> None:
    """Answer one request."""
    request = msgspec.json.decode(Path(request_path).read_bytes(), type=Request)
    answer: dict[str, object]
    try:
        answer = {"prediction": msgspec.to_builtins(predict_here(request))}
    except EndedBeforeDevice as error:
        answer = {"error": str(error), "printed": True}
    except LeakcheckError as error:
        answer = {"error": str(error)}
    except BaseException as error:
        retry = not request.on_cpu and not isinstance(error, _FINAL_ERRORS)
        answer = {"error": _told(error, request.target), "retry": retry}
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
    cuda_silent.install(device)
    one_process.install(device)
    register_optimizer_step_pre_hook(device.before_optimizer)
    _look_at_modules(device)
    with ExitStack() as stack:
        if not request.on_cpu:
            stack.enter_context(fake_device.FakeMode(allow_non_fake_inputs=True))
        stack.enter_context(device)
        run(request, device)
    if not device.events:
        raise UsageError(f"{request.target}: the program put no tensor on a CUDA device")
    steps = device.steps
    if one_process.is_sharded():
        device.note_once(f"{one_process.SHARDS_NOTE}; these are the sizes of a host's run")
    if steps < request.steps:
        device.note_once(f"only {steps} of {request.steps} optimizer steps were made")
    context_bytes = device_profile.context_bytes
    if device.loads_cudnn:
        context_bytes += device_profile.cudnn_bytes
    peak_allocated, peak_reserved = device.highest_bytes
    return Prediction(
        device=device_profile.key,
        mode="cpu" if request.on_cpu else "fake",
        steps=steps,
        peak_allocated_bytes=peak_allocated,
        peak_reserved_bytes=peak_reserved,
        context_bytes=context_bytes,
        memory_bytes=device_profile.memory_bytes,
        phase_peaks=device.peaks,
        pages=tuple(device.pages),
        peak_page=device.peak_page(POLICIES[request.policy](None)),
        timeline=device.timeline(POLICIES[request.policy](None)),
        notes=tuple(device.notes),
        conditions=tuple(device.conditions),
        batch_size=request.batch_size,
        context_measured=device_profile.context_measured,
        output_bytes=device.output_bytes,
    )


def _look_at_modules(device: SimulatedDevice) -> None:
    """Note recurrent kernels and compiled code, run eagerly here; sum what modules return."""

    def look(module: torch.nn.Module, *_: object) -> None:
        if isinstance(module, torch.nn.RNNBase):
            device.note_once("cuDNN's recurrent kernels keep other buffers than these")

    def add(module: torch.nn.Module, inputs: object, output: object) -> None:
        if not any(module.children()):  # a container returns what its last child did
            for leaf in tree_leaves(output):
                if isinstance(leaf, torch.Tensor):
                    device.count_output(leaf)

    def uncompiled(model: Any = None, **_: object) -> Any:
        device.note_once(uncompiled_note)
        return model if model is not None else lambda function: function

    def stay_eager(module: torch.nn.Module, *_: object, **__: object) -> None:
        device.note_once(uncompiled_note)

    uncompiled_note = "torch.compile's code reuses buffers; the program ran uncompiled"
    torch.nn.modules.module.register_module_forward_pre_hook(look)
    torch.nn.modules.module.register_module_forward_hook(add)
    torch.compile = uncompiled
    torch.nn.Module.compile = stay_eager  # type: ignore[method-assign,assignment]


def _told(error: BaseException, target: str) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "leakcheck" not in frame.filename]
    own = [frame for frame in own if not frame.filename.startswith("<frozen")]
    user = [frame for frame in own if "site-packages" not in frame.filename] or own
    where = f"{user[-1].filename}:{user[-1].lineno}" if user else target
    if any("/torch/distributed/fsdp/" in Path(frame.filename).as_posix() for frame in frames):
        where += f": {one_process.SHARDS_NOTE}"
    if isinstance(error, KeyError) and error.args[0] in _LAUNCHER_VARIABLES:
        text += " is not set; a launcher sets RANK=0 LOCAL_RANK=0 WORLD_SIZE=1"
    return f"{where}: {type(error).__name__}: {text[:300]}"
