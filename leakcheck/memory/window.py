"""What grew on a device between two steps, found in a window of a few: the sentinel's question.

with GrowthWindow(device=0) as window:
    for step in range(20):
        train()
        window.step(step)
memory = window.memory
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from leakcheck.memory.ledger import END_OF_STEP, device_memory
from leakcheck.memory.watch import Ledger
from leakcheck.model import DeviceMemory, LedgerPage
from leakcheck.tracked import instances

if TYPE_CHECKING:
    import torch

    from leakcheck.memory.storages import StorageTrace

_SETTLING_STEPS = 2  # what each step replaces has been replaced once, so every block has its place


class GrowthWindow:
    """Takes a ledger page after two steps and one at the end, with the stacks of new blocks.

    Models and optimizers are looked up among Python's objects unless a ledger is given. Reading a
    page needs no synchronisation; looking up costs 26-170 ms, once.
    """

    def __init__(self, device: int | StorageTrace = 0, ledger: Ledger | None = None) -> None:
        self.device = device
        self.memory: DeviceMemory | None = None
        self._ledger = ledger
        self._open = ExitStack()
        self._first: LedgerPage | None = None
        self._steps = 0
        self._number = 0

    def __enter__(self) -> GrowthWindow:
        self._open.enter_context(allocation_stacks())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open:
            if self._first is not None and self._number > self._first.step:
                self.memory = self._explain(self._first, self._page())

    def step(self, number: int) -> None:
        """Tell that step `number` is over; numbers rise."""
        self._steps += 1
        self._number = number
        if self._steps == _SETTLING_STEPS:
            self._first = self._page()

    def _page(self) -> LedgerPage:
        if self._ledger is None:
            self._ledger = Ledger(*roots_in_python(), self.device)
        return self._ledger.take(END_OF_STEP, self._number)

    def _explain(self, first: LedgerPage, last: LedgerPage) -> DeviceMemory | None:
        traced = not isinstance(self.device, int)
        name = "traced" if traced else f"cuda:{self.device}"
        return device_memory((first, last), device=name, traced=traced)


def roots_in_python() -> tuple[list[torch.nn.Module], list[torch.optim.Optimizer]]:
    """The outermost modules and all optimizers that the collector knows."""
    import torch

    modules, optimizers = instances(torch.nn.Module), instances(torch.optim.Optimizer)
    inner = {id(child) for module in modules for child in module.__dict__["_modules"].values()}
    return [module for module in modules if id(module) not in inner], optimizers


@contextmanager
def allocation_stacks() -> Iterator[bool]:
    """Record Python stacks of new device blocks inside; yields whether they will be there.

    False without a CUDA context, or with a torch that cannot. Only live blocks are remembered
    ("state"), not every event, so nothing grows with the length of the window. A program that
    records by itself keeps its own settings, and its stacks serve us too.
    """
    import torch

    initialised = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    record: Any = getattr(torch.cuda.memory, "_record_memory_history", None)
    if not initialised or record is None:
        yield False
        return
    if _records_already(torch):
        yield True
        return
    try:
        record(enabled="state", context="state", stacks="python")
    except (TypeError, RuntimeError):  # an older signature, or another allocator plugged in
        yield False
        return
    try:
        yield True
    finally:
        record(enabled=None)


def _records_already(torch: Any) -> bool:
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(enabled is not None and enabled())
