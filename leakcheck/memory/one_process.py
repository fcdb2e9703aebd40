"""Programs of many processes, predicted as their first: one process, one stream, no communication.

`init_process_group` gets torch's fake process group, DataParallel and DistributedDataParallel a
stand-in that holds the gradient buckets, `spawn` calls its function here. Only ever installed in
the predictor's own process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from leakcheck.memory.rounding import MIB
from leakcheck.memory.simulate import SimulatedDevice
from leakcheck.tracked import instances

# torch/csrc/distributed/c10d/reducer.hpp: kDefaultFirstBucketBytes, kDefaultBucketBytesCap
FIRST_BUCKET_BYTES: Final = 1 * MIB
BUCKET_BYTES: Final = 25 * MIB


SHARDS_NOTE: Final = "the shards of FSDP and what it gathers are not modelled"


def is_sharded() -> bool:
    """Whether a module of this process is one of FSDP's, of either generation."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    kinds = [getattr(fsdp, name, None) for name in ("FullyShardedDataParallel", "FSDPModule")]
    known = tuple(kind for kind in kinds if kind is not None)
    return bool(known) and bool(instances(*known))


def install(device: SimulatedDevice) -> None:
    """Patch torch.distributed, the parallel wrappers and spawn of this process."""
    _spawn_here(device)
    _wrap_only(device)
    if torch.distributed.is_available():
        _fake_groups(device)


def _spawn_here(device: SimulatedDevice) -> None:
    from torch import multiprocessing

    def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), *_: Any, **__: Any) -> None:
        device.assume("only the first of the spawned processes was run")
        fn(0, *args)

    multiprocessing.spawn = spawn  # type: ignore[attr-defined]
    multiprocessing.start_processes = spawn  # type: ignore[attr-defined]


def _fake_groups(device: SimulatedDevice) -> None:
    from torch import distributed

    begin = distributed.init_process_group

    def init_process_group(*args: Any, **kwargs: Any) -> None:
        try:
            from torch.testing._internal.distributed.fake_pg import FakeStore
        except ImportError:  # not in every build
            raise RuntimeError("this torch has no fake process group") from None
        device.note_once("collectives ran on a fake process group, without NCCL's buffers")
        size = kwargs.get("world_size", -1)
        rank = kwargs.get("rank", -1)
        begin(
            "fake",
            rank=rank if rank >= 0 else int(os.environ.get("RANK", 0)),
            world_size=size if size > 0 else int(os.environ.get("WORLD_SIZE", 1)),
            store=FakeStore(),
        )

    distributed.init_process_group = init_process_group


def _wrap_only(device: SimulatedDevice) -> None:
    class DataParallel(torch.nn.Module):
        """The module itself, on one device."""

        def __init__(self, module: torch.nn.Module, *_: Any, **__: Any) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self.module(*args, **kwargs)

    class DistributedDataParallel(DataParallel):
        """The module and the flat buckets its gradients are gathered in."""

        def __init__(self, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            super().__init__(module)
            device.note_once("DistributedDataParallel's buckets are counted, its traffic is not")
            if not kwargs.get("gradient_as_bucket_view"):
                self._buckets = list(_buckets(module, kwargs.get("bucket_cap_mb")))

        @contextmanager
        def no_sync(self) -> Iterator[None]:
            yield

    nn = torch.nn
    nn.DataParallel = nn.parallel.DataParallel = DataParallel  # type: ignore[assignment,misc]
    nn.parallel.DistributedDataParallel = DistributedDataParallel  # type: ignore[assignment,misc]
    if torch.distributed.is_available():
        from torch.nn.parallel import distributed

        distributed.DistributedDataParallel = DistributedDataParallel  # type: ignore[assignment,misc]


def _buckets(module: torch.nn.Module, cap_mb: float | None) -> Iterator[torch.Tensor]:
    """One flat tensor for each bucket, filled in the order gradients come: the last first."""
    limit = FIRST_BUCKET_BYTES if cap_mb is None else int(cap_mb * MIB)
    held: list[torch.Tensor] = []
    for parameter in reversed([p for p in module.parameters() if p.requires_grad]):
        if held and (held[0].dtype, held[0].device) != (parameter.dtype, parameter.device):
            yield _flat(held)
            held = []
        held.append(parameter)
        if sum(each.nbytes for each in held) >= limit:
            yield _flat(held)
            held, limit = [], BUCKET_BYTES if cap_mb is None else limit
    if held:
        yield _flat(held)


def _flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return tensors[0].new_empty(sum(each.numel() for each in tensors))
