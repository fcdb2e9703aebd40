"""Take ledger pages of a training program, on a CUDA device or over traced storages.

    with Ledger(model, optimizer) as ledger:
        loss = criterion(model(x), y)
        page = ledger.take("after forward", step, inputs=x, outputs=loss)

Nothing is synchronised and no device context is made: a device the program has not touched is
refused. torch is imported only here and in the modules this one uses.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from leakcheck.errors import UsageError
from leakcheck.memory.growth import WARMUP_STEPS
from leakcheck.memory.ledger import LiveBlock, device_memory, write_page
from leakcheck.memory.owners import SavedTensors, owners, tensors_in_python
from leakcheck.memory.sites import site_of
from leakcheck.memory.workspaces import known_sizes
from leakcheck.model import Category, DeviceMemory, LedgerPage

if TYPE_CHECKING:
    import torch

    from leakcheck.memory.storages import StorageTrace

_MOST_PAGES = 1000  # a ledger is for a window of steps; it must not be the leak
_WORKSPACE_FRAMES = ("getNewWorkspace", "getCUDABlasLtWorkspace", "allocateWorkspace")


class Ledger:
    """Knows the roots of a program and writes pages; a context manager for saved tensors.

    `device` is a CUDA device index, or a `StorageTrace` to work without one. Entering records what
    autograd saves (about 12 % of a tiny step, less of a real one); without entering, activations
    are found by looking at what Python holds.
    """

    def __init__(
        self,
        models: torch.nn.Module | Sequence[torch.nn.Module] = (),
        optimizers: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] = (),
        device: int | StorageTrace = 0,
    ) -> None:
        import torch

        self.models = (models,) if isinstance(models, torch.nn.Module) else tuple(models)
        single = isinstance(optimizers, torch.optim.Optimizer)
        self.optimizers = (optimizers,) if single else tuple(optimizers)  # type: ignore[arg-type]
        self.device = device
        self.pages: deque[LedgerPage] = deque(maxlen=_MOST_PAGES)
        self.owned: dict[int, Category] = {}  # of the last page: address -> category
        self._saved = SavedTensors()

    def __enter__(self) -> Ledger:
        self._saved.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._saved.__exit__(kind, error, trace)

    def take(
        self,
        phase: str,
        step: int = 0,
        *,
        inputs: object = (),
        outputs: object = (),
        scan: bool = False,
    ) -> LedgerPage:
        """Write a page of this moment and keep it in `pages`.

        `scan` also looks through Python's objects for tensors that nothing else claims; it costs
        26-170 ms. Raises UsageError for a CUDA device that the program has not touched.
        """
        claimed: dict[str, Any] = {"models": self.models, "optimizers": self.optimizers}
        claimed |= {"inputs": inputs, "outputs": outputs, "saved": self._saved}
        held: Iterable[torch.Tensor] = tensors_in_python() if scan else ()
        if isinstance(self.device, int):
            found = owners(_on_device(self.device), **claimed, held=held)
            page = _device_page(self.device, found, phase, step)
        else:
            found = owners(self.device.address_of, **claimed, held=held)
            reserved = self.device.allocator.reserved_bytes
            blocks = self.device.blocks()
            page = write_page(blocks, found, phase=phase, step=step, reserved_bytes=reserved)
        self.owned = found
        self.pages.append(page)
        return page

    def memory(self, phase: str, expected_bytes: int | None = None) -> DeviceMemory | None:
        """What is expected and what grew at one phase, from the first settled step to the last.

        `expected_bytes` is a prediction for that phase; without one, what the first settled page
        explains is expected. None with fewer than two settled pages.
        """
        settled = [page for page in self.pages if page.phase == phase][WARMUP_STEPS:]
        traced = not isinstance(self.device, int)
        name = "traced" if traced else f"cuda:{self.device}"
        return device_memory(settled, device=name, traced=traced, expected=expected_bytes)


def live_blocks(segments: Iterable[dict[str, Any]], device: int) -> tuple[list[LiveBlock], int]:
    """The live blocks and the reserved bytes of a device, from `torch.cuda.memory_snapshot()`.

    Blocks that only wait for another stream are left out, as `memory_allocated` does.
    """
    blocks: list[LiveBlock] = []
    reserved = 0
    for segment in segments:
        if segment["device"] != device:
            continue
        reserved += segment["total_size"]
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks.append(_live_block(block, at))
            at += block["size"]
    return blocks, reserved


def _segments() -> list[dict[str, Any]]:
    import torch

    try:
        return list(torch.cuda.memory_snapshot(include_traces=False))  # type: ignore[no-untyped-call]
    except TypeError:  # before torch 2.10 there is no such argument
        return list(torch.cuda.memory_snapshot())  # type: ignore[no-untyped-call]


def _live_block(block: dict[str, Any], address: int) -> LiveBlock:
    frames = block.get("frames", ())
    return LiveBlock(
        address=block.get("address", address),
        size_bytes=block["size"],
        requested_bytes=block.get("requested_size", block["size"]),
        site=site_of(frames),
        workspace=any(name in str(f.get("name", "")) for f in frames for name in _WORKSPACE_FRAMES),
    )


def _device_page(device: int, found: dict[int, Any], phase: str, step: int) -> LedgerPage:
    import torch

    touched = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    blocks, reserved = live_blocks(_segments(), device) if touched else ([], 0)
    if not reserved:  # asking the driver would make a context
        raise UsageError(f"the program has not used cuda:{device}; there is nothing to count")
    free, total = torch.cuda.mem_get_info(device)
    return write_page(
        blocks,
        found,
        phase=phase,
        step=step,
        reserved_bytes=reserved,
        used_bytes=total - free,
        workspaces=known_sizes(os.environ),
    )


def _on_device(device: int) -> Callable[[torch.Tensor], int | None]:
    def address(tensor: torch.Tensor) -> int | None:
        if tensor.device.type != "cuda" or tensor.device.index != device:
            return None
        try:
            return tensor.untyped_storage().data_ptr()
        except RuntimeError:  # sparse, fake and functional tensors
            return None

    return address
