"""A training step on the fake device, followed storage by storage through a simulated allocator.

What torch does not show is added by rule: the workspaces of each thread that multiplies matrices,
the scratch memory of kernels, and answers to `.item()`, which a tensor without numbers cannot give.
Every such liberty is noted, so that a prediction can say what it could not honour.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from leakcheck.memory import made_up, scratch
from leakcheck.memory.blocks import Allocator
from leakcheck.memory.fake_device import DEVICE_TYPE
from leakcheck.memory.ledger import LiveBlock
from leakcheck.memory.peak import page_at
from leakcheck.memory.prediction import CUDNN_NOTE
from leakcheck.memory.profiles import DeviceProfile
from leakcheck.memory.storages import StorageTrace
from leakcheck.memory.timeline import Timeline, predicted_timeline
from leakcheck.memory.trace import Event
from leakcheck.memory.watch import Ledger
from leakcheck.memory.workspaces import cublas_bytes, cublaslt_bytes, uses_cublaslt
from leakcheck.model import Category, LedgerPage
from leakcheck.tracked import instances

AFTER_FORWARD, AFTER_BACKWARD, AFTER_STEP = "after forward", "after backward", "after step"
MATRIX_PRODUCTS = frozenset(
    (
        *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot", "addbmm"),
        *("_scaled_mm", "_addmm_activation"),
    )
)
WHOLE_PRODUCTS = frozenset(["linear", "matmul"])  # inference mode does not take them apart
PRODUCTS = MATRIX_PRODUCTS | WHOLE_PRODUCTS
CONVOLUTIONS = frozenset(("convolution", "convolution_backward", "_cudnn_rnn", "lstm", "gru"))
MOST_INPUTS = 4096
VALUES_NOTE = "memory does not follow the values that were asked of tensors (.item(), if): made up"


class SimulatedDevice(StorageTrace):  # type: ignore[no-untyped-call]
    """Storages, workspaces, phases and pages of one simulated device.

    `pages` holds the ledger of the last optimizer step that was watched; `peaks` the highest
    allocated bytes in each phase of any step; `notes` what is not modelled, `conditions` what the
    number holds for; `output_bytes` what the modules returned in the watched step.
    """

    def __init__(
        self, profile: DeviceProfile, allocator: Allocator, workspace_bytes: int | None = None
    ) -> None:
        super().__init__(DEVICE_TYPE, allocator)
        self.profile = profile
        self.workspace_bytes = workspace_bytes  # of cuBLAS, None for what the device takes
        self.steps = 0
        self.notes: dict[str, int] = {}
        self.conditions: dict[str, int] = {}
        self.output_bytes = 0
        self.peaks: dict[str, int] = {}
        self.pages: list[LedgerPage] = []
        self.takes_pages = False
        self._earlier_peaks = 0, 0
        self._phase = "forward"
        self._closure_runs = False
        self._added: int | None = None  # the storage that autograd adds a gradient to
        # that storage; the sum's storage, its size and site
        self._sum: tuple[int, int, int, int] | None = None
        self._workspaces: dict[tuple[str, str], int] = {}  # library and thread -> key of the block
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._inputs: list[weakref.ref[torch.Tensor]] = []
        self._ledger: Ledger | None = None
        self._watched_from = 0  # the number of the first event of the watched step
        self._phase_ends: list[tuple[int, str]] = []
        self._highest = 0, 0  # allocated bytes of the watched step, and after how many events
        self._categories: dict[int, Category] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator, with the phase it belongs to and the workspace it needs."""
        name = func._schema.name.partition("::")[2]
        kwargs = self._translated(kwargs) if kwargs else {}
        if name == "_local_scalar_dense" and self.device_type == DEVICE_TYPE:
            return self._made_up_scalar(args[0])
        self._follow_phase()
        if name in CONVOLUTIONS and self._on_device(args):
            self.note_once(CUDNN_NOTE)
        if name == "add" and _engine_adds():
            self._added = args[0].untyped_storage()._cdata
        out = super().__torch_dispatch__(func, types, args, kwargs)
        self._added = None
        if name in PRODUCTS and self._on_device(args):  # after its output, as kernels ask for it
            self._open_handle(name, args, kwargs)
        elif self.device_type == DEVICE_TYPE:
            self._pass_through(scratch.requests(name, args, out, self.profile))
        made_up.follow(name, args, out)
        if isinstance(out, torch.Tensor) and self._is_new_here(out, args):
            self._remember_input(out)
        self._follow_peaks()
        return out

    def _follow_peaks(self) -> None:
        now = self.allocator.allocated_bytes
        if now > self.peaks.get(self._phase, 0):
            self.peaks[self._phase] = now
        if self.takes_pages and now > self._highest[0]:
            self._highest = now, len(self.events)

    def _place(self, key: int, size: int, site: int = -1) -> None:
        """Give a storage its block; that of a sum of gradients waits, as it may be the old one."""
        self._settle()
        if self._added is not None:
            self._sum, self._added = (self._added, key, size, site), None
        elif key not in self._live:
            super()._place(key, size, site)

    def _settle(self) -> None:
        """Something came first: who holds the old gradient keeps it, and the sum is new."""
        if self._sum is not None:
            (_, *sum_of_both), self._sum = self._sum, None
            super()._place(*sum_of_both)

    def _died(self, key: int) -> None:
        with self._lock:
            if self._sum is not None and self._sum[0] == key:
                self._live[self._sum[1]] = self._live.pop(key)
                self._sum = None
            else:
                self._settle()
                super()._died(key)

    def _seen(self, func: Any, args: tuple[Any, ...], out: Any) -> Any:
        return scratch.outputs(func._schema.name.partition("::")[2], args, out)

    def _translated(self, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What asked for CUDA past the functions that are translated (`empty_like`)."""
        asked = kwargs.get("device")
        if asked is None or asked.type != "cuda":
            return kwargs
        return {**kwargs, "device": torch.device(self.device_type)}

    def note_once(self, text: str) -> None:
        """Count something that is not modelled, so that the number may be off."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def assume(self, text: str) -> None:
        """Count something that the number holds for only if it is so."""
        self.conditions[text] = self.conditions.get(text, 0) + 1

    def reset_peaks(self) -> None:
        """Begin the peaks that the program is told anew; those of the prediction go on."""
        self._earlier_peaks = self.highest_bytes
        self.allocator.reset_peaks()

    @property
    def highest_bytes(self) -> tuple[int, int]:
        """The allocated and the reserved peak of the whole run."""
        now = self.allocator.peak_allocated_bytes, self.allocator.peak_reserved_bytes
        return max(now[0], self._earlier_peaks[0]), max(now[1], self._earlier_peaks[1])

    def count_output(self, tensor: torch.Tensor) -> None:
        """Add a module's output to the forward-hook measure of the step that is watched."""
        if self.takes_pages and self._phase == "forward" and self.address_of(tensor) is not None:
            self.output_bytes += tensor.numel() * tensor.element_size()

    def before_optimizer(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """The gradients are complete, unless a closure makes them: a hook before every step."""
        self._optimizers.add(optimizer)
        self._closure_runs = any(callable(each) for each in (*args[1:], kwargs.get("closure")))
        if not self._closure_runs:
            self._backward_is_over()

    def _backward_is_over(self) -> None:
        self._closure_runs = False
        self._take(AFTER_BACKWARD)
        self._phase = "optimizer"

    def after_optimizer(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """A step is over: a hook after every optimizer step."""
        self._take(AFTER_STEP)
        self.steps += 1
        self._phase = "forward"

    def begin_pages(self) -> None:
        """Take ledger pages from now on."""
        self.takes_pages = True
        self.pages.clear()
        self._watched_from = len(self.events)
        self._ledger = Ledger(_modules(), tuple(self._optimizers), self)
        self._ledger.__enter__()

    def end_pages(self) -> None:
        """Take no more pages."""
        if self._ledger is not None:
            self._ledger.__exit__(None, None, None)
            self._ledger, self.takes_pages = None, False

    def empty_cache(self) -> None:
        """Give cached segments back, as the program asked."""
        self.allocator.empty_cache()
        self.events.append(Event("empty_cache", 0))

    def peak_page(self, allocator: Allocator) -> LedgerPage | None:
        """The page at the highest moment of the watched step, played on a new allocator."""
        if not self.pages:
            return None
        events = self.events[: self._highest[1]]
        return page_at(events, allocator, self._categories, self.sites, step=self.pages[-1].step)

    def timeline(self, allocator: Allocator) -> Timeline | None:
        """The watched step over its events by category, played on a new allocator."""
        if not self.pages:
            return None
        ends, start = self._phase_ends, self._watched_from
        return predicted_timeline(self.events, allocator, self._categories, start, ends)

    def page(self, phase: str) -> LedgerPage:
        """Write a page of this moment, by whoever holds what."""
        ledger = Ledger(_modules(), tuple(self._optimizers), self)
        return ledger.take(phase, self.steps, inputs=self._live_inputs(), scan=True)

    def _take(self, phase: str) -> None:
        self._settle()
        if self._ledger is not None:
            inputs = self._live_inputs()
            self._phase_ends.append((len(self.events) - 1, phase))
            self.pages.append(self._ledger.take(phase, self.steps, inputs=inputs, scan=True))
            self._remember_categories(self._ledger.owned)

    def _remember_categories(self, owned: Mapping[int, Category]) -> None:
        """What a block holds on the first page that shows it is what it holds at the peak."""
        for name, address, *_ in self._live.values():
            if address in owned:
                self._categories.setdefault(name, owned[address])

    def _follow_phase(self) -> None:
        in_backward = torch._C._current_graph_task_id() != -1
        if in_backward and self._phase == "forward":
            self._take(AFTER_FORWARD)
            self._phase = "backward"
        elif not in_backward and self._phase == "backward":
            self._phase = "forward"
            if self._closure_runs:
                self._backward_is_over()

    def blocks(self) -> list[LiveBlock]:
        """The live storages and the workspaces."""
        with self._lock:
            self._settle()
            own = {self._live[key][1] for key in self._workspaces.values()}
            return [replace(each, workspace=each.address in own) for each in super().blocks()]

    def drop_workspaces(self) -> None:
        """Free them, as `torch._C._cuda_clearCublasWorkspaces` does; the next product asks anew."""
        for key in self._workspaces.values():
            self._died(key)
        self._workspaces.clear()

    def _open_handle(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        size = self.workspace_bytes
        if size is None:
            size = cublas_bytes(self.profile.capability, os.environ)
        self._take_workspace("cuBLAS", size)
        if _through_cublaslt(name, args, kwargs):
            self._take_workspace("cuBLASLt", cublaslt_bytes(size, os.environ))

    def _pass_through(self, requests: scratch.Requests) -> None:
        """Ask for what a kernel needs for itself, and give it back, the last first."""
        keys: list[int] = []
        live: list[int] = []
        for size in requests:
            if size < 0:
                live.remove(keys[~size])
                self._died(keys[~size])
            else:
                live.append(self._take_block(size))
                keys.append(live[-1])
                self._follow_peaks()
        for key in reversed(live):
            self._died(key)

    def _take_workspace(self, library: str, size: int) -> None:
        # handles are per thread, and autograd runs backward in a thread of the device
        thread = "backward" if torch._C._current_graph_task_id() != -1 else "main"
        if (library, thread) in self._workspaces or size == 0:
            return
        self._workspaces[library, thread] = key = self._take_block(size)
        self._categories[-key] = "workspaces"

    def _take_block(self, size: int) -> int:
        """Allocate what is no tensor's storage; returns the key it lives under."""
        with self._lock:
            key = -self._made - 1  # no storage has such a key
            self._place(key, size)
            return key

    def _made_up_scalar(self, tensor: torch.Tensor) -> bool | int | float:
        if tensor.device.type == self.device_type:
            self.assume(VALUES_NOTE)
        return made_up.scalar(tensor)

    def _on_device(self, args: tuple[Any, ...]) -> bool:
        for value in args:
            if isinstance(value, torch.Tensor):
                if value.device.type == self.device_type:
                    return True
            elif isinstance(value, (list, tuple)) and self._on_device(tuple(value)):
                return True
        return False

    def _is_new_here(self, out: torch.Tensor, args: tuple[Any, ...]) -> bool:
        return out.device.type == self.device_type and not self._on_device(args)

    def _remember_input(self, tensor: torch.Tensor) -> None:
        if len(self._inputs) >= MOST_INPUTS:
            self._inputs = [ref for ref in self._inputs if ref() is not None]
        self._inputs.append(weakref.ref(tensor))

    def _live_inputs(self) -> list[torch.Tensor]:
        return [tensor for ref in self._inputs if (tensor := ref()) is not None]


def _engine_adds() -> bool:
    """Whether autograd sums gradients between two nodes; on a device it does so in place.

    input_buffer.cpp adds to the first gradient where nobody else holds it, but never to a tensor
    subclass, as fake ones are.
    """
    if torch._C._current_graph_task_id() == -1 or torch.is_grad_enabled():
        return False
    node = torch._C._current_autograd_node()  # the one whose gradients are handed on
    return not isinstance(node, torch.autograd.function.BackwardCFunction)


def _through_cublaslt(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    if name == "_scaled_mm":
        return True
    if name == "linear":  # inference mode does not take it apart
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        weight = args[1].t() if bias is not None and args[1].dim() == 2 else None
    elif name in ("addmm", "_addmm_activation"):
        bias, weight = args[0], args[2]
    else:
        return False
    if bias is None or weight is None or bias.dtype.is_complex:
        return False
    floating = bias.dtype.is_floating_point
    beta = kwargs.get("beta", 1)
    return uses_cublaslt(tuple(bias.shape), tuple(weight.shape), floating=floating, beta=beta)


def _modules() -> list[torch.nn.Module]:
    return instances(torch.nn.Module)
