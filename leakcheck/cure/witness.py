"""Notes what a program makes, inside its process: losses, weights, time a step, peak memory.

Nothing is kept that grows: each loss goes to a file as it is made, as a hash and a value.
"""

from __future__ import annotations

import math
import random
import resource
import struct
import sys
import time
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, BinaryIO

from leakcheck import tracked
from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.clock.optimizers import hook_optimizers

LOSS = struct.Struct("<Id")
MOST_OPTIMIZERS = 4  # of the last ones, whose weights are compared
TIMED_STEPS = 512
SAMPLED = 64  # values of a parameter, evenly spaced: to say by how much it differs
SAMPLE = struct.Struct(f"<{SAMPLED}d")


class _Held:
    """Keeps one optimizer; of a class of ours, so that it is not taken for a holder."""

    __slots__ = ("optimizer",)

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer


class Witness:
    """Watches what backward is called on and which optimizers step."""

    def __init__(self) -> None:
        self._losses: BinaryIO | None = None
        self._held: deque[_Held] = deque(maxlen=MOST_OPTIMIZERS)
        # at full size: what grows in here would count as the program's
        self._times = array("d", bytes(8 * TIMED_STEPS))
        self._timed, self._last = 0, 0.0

    def start(self) -> None:
        """Seed what the program does not, and listen; before what it imports is loaded."""
        when_loaded("numpy.random", lambda module: module.seed(0))
        when_loaded("torch", lambda module: module.manual_seed(0))
        when_loaded("torch.autograd", self._wrap_backward)
        when_loaded("torch.autograd", self._wrap_grad)
        hook_optimizers(self._stepped)

    def begin(self, losses: Path) -> None:
        """Write each loss to this file, until the weights are asked for."""
        random.seed(0)  # a fork has another seed than its parent
        self._losses = open(losses, "wb", buffering=1 << 16)  # noqa: SIM115

    def step(self) -> None:
        """Note the time at which a step is over."""
        now = time.perf_counter()
        if self._last:
            self._times[self._timed % TIMED_STEPS] = now - self._last
            self._timed += 1
        self._last = now

    @property
    def step_s(self) -> float:
        """The median time of a step."""
        return median(self._times[: self._timed]) if self._timed else 0.0

    def weights(self, samples: Path) -> list[int]:
        """Hash each parameter that an optimizer stepped, and end the list of losses.

        Some values of each are written to a file.
        """
        if self._losses is not None:
            self._losses.close()
            self._losses = None
        groups = [group for held in self._held for group in held.optimizer.param_groups]
        stepped = [parameter for group in groups for parameter in group["params"]]
        samples.write_bytes(b"".join(map(_sample, stepped)))
        return [_hash(parameter) for parameter in stepped]

    def modules(self) -> list[int]:
        """Hash each parameter and buffer of the modules that are alive, in no particular order."""
        nn: Any = sys.modules.get("torch.nn")
        if nn is None:
            return []
        alive = tracked.instances(nn.Module)
        named = (part for each in alive for part in (each._parameters, each._buffers))
        held = {id(tensor): tensor for part in named for tensor in part.values()}
        return _hashes(held.values())

    def gradients(self) -> list[int]:
        """Hash each gradient that is there, in no particular order."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return []
        with torch._C.DisableTorchFunctionSubclass():  # a subclass's own is the user's code
            leaves = (each for each in tracked.instances(torch.Tensor) if each.is_leaf)
            return _hashes(each.grad for each in leaves)

    def _wrap_backward(self, autograd: ModuleType) -> None:
        plain: Callable[..., Any] = autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            self._note(tensors)
            return plain(tensors, *args, **kwargs)

        autograd.backward = backward  # type: ignore[attr-defined]

    def _wrap_grad(self, autograd: ModuleType) -> None:
        plain: Callable[..., Any] = autograd.grad

        def grad(*args: Any, **kwargs: Any) -> Any:
            found = plain(*args, **kwargs)
            self._note([each for each in found if each is not None])
            return found

        autograd.grad = grad  # type: ignore[attr-defined]

    def _note(self, tensors: Any) -> None:
        for each in tensors if isinstance(tensors, (tuple, list)) else [tensors]:
            value = float(each.detach()) if each.numel() == 1 else math.nan
            if self._losses is not None:
                self._losses.write(LOSS.pack(_hash(each), value))

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if not any(held.optimizer is optimizer for held in self._held):
            self._held.append(_Held(optimizer))


def peak_bytes() -> int:
    """Return the most that the process held, on the host and on its devices."""
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return host
    devices = range(torch.cuda.device_count())
    return host + sum(int(torch.cuda.max_memory_allocated(device)) for device in devices)


def _sample(tensor: Any) -> bytes:
    """Pack values of a tensor of real numbers, as many for each tensor: 0 where it has fewer."""
    plain = tensor.detach().reshape(-1)
    if not plain.is_floating_point():
        return bytes(SAMPLE.size)
    values = plain[:: max(1, -(-len(plain) // SAMPLED))].double().tolist()
    return SAMPLE.pack(*values, *(SAMPLED - len(values)) * (0.0,))


def _hashes(tensors: Iterable[Any]) -> list[int]:
    hashed = (_hash_if_plain(tensor) for tensor in tensors if tensor is not None)
    return sorted({each for each in hashed if each is not None})


def _hash_if_plain(tensor: Any) -> int | None:
    try:
        return _hash(tensor)
    except Exception:  # meta, sparse, quantized, not yet made
        return None


def _hash(tensor: Any) -> int:
    import torch

    plain = tensor.detach().cpu().contiguous()
    plain = plain.reshape(-1).view(torch.uint8) if plain.numel() else plain.to(torch.uint8)
    shape = repr((tuple(tensor.shape), str(tensor.dtype))).encode()
    return zlib.crc32(bytes(plain.untyped_storage())[: plain.numel()], zlib.crc32(shape))
