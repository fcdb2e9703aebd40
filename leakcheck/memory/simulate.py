"""A training step on the fake device, followed storage by storage through a simulated allocator.

`device_trace.py` adds what kernels take; this knows phases, steps and pages, and makes up answers
to `.item()`, which a tensor without numbers cannot give. Every such liberty is noted, so that a
prediction can say what it could not honour.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch

from leakcheck.memory import made_up
from leakcheck.memory.blocks import Allocator
from leakcheck.memory.device_trace import CONVOLUTIONS, DeviceTrace
from leakcheck.memory.fake_device import DEVICE_TYPE
from leakcheck.memory.peak import page_at
from leakcheck.memory.prediction import CUDNN_NOTE
from leakcheck.memory.profiles import DeviceProfile
from leakcheck.memory.storages import operator_name
from leakcheck.memory.timeline import Timeline, predicted_timeline
from leakcheck.memory.trace import Event
from leakcheck.memory.watch import Ledger
from leakcheck.model import Category, LedgerPage
from leakcheck.tracked import instances

AFTER_FORWARD, AFTER_BACKWARD, AFTER_STEP = "after forward", "after backward", "after step"
MOST_INPUTS = 4096
VALUES_NOTE = "memory does not follow the values that were asked of tensors (.item(), if): made up"


class SimulatedDevice(DeviceTrace):  # type: ignore[no-untyped-call]
    """Storages, workspaces, phases and pages of one simulated device.

    `pages` holds the ledger of the last optimizer step that was watched; `peaks` the highest
    allocated bytes in each phase of any step; `notes` what is not modelled, `conditions` what the
    number holds for; `output_bytes` what the modules returned in the watched step.
    """

    def __init__(
        self, profile: DeviceProfile, allocator: Allocator, workspace_bytes: int | None = None
    ) -> None:
        super().__init__(profile, allocator, workspace_bytes)
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
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._inputs: list[weakref.ref[torch.Tensor]] = []
        self._ledger: Ledger | None = None
        self._watched_from = 0  # the number of the first event of the watched step
        self._phase_ends: list[tuple[int, str]] = []
        self._highest = 0, 0  # allocated bytes of the watched step, and after how many events

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator, in the phase it belongs to."""
        name = operator_name(func)
        kwargs = self._translated(kwargs) if kwargs else {}
        if name == "_local_scalar_dense" and self.device_type == DEVICE_TYPE:
            return self._made_up_scalar(args[0])
        self._follow_phase()
        if name in CONVOLUTIONS and self._on_device(args):
            self.note_once(CUDNN_NOTE)
        out = super().__torch_dispatch__(func, types, args, kwargs)
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
        self.settled().reset_peaks()

    @property
    def highest_bytes(self) -> tuple[int, int]:
        """The allocated and the reserved peak of the whole run."""
        allocator = self.settled()
        now = allocator.peak_allocated_bytes, allocator.peak_reserved_bytes
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
        self.settled().empty_cache()
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
        """Write a ledger page of this moment, each block under whoever holds it."""
        self._settle()
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

    def _made_up_scalar(self, tensor: torch.Tensor) -> bool | int | float:
        if tensor.device.type == self.device_type:
            self.assume(VALUES_NOTE)
        return made_up.scalar(tensor)

    def _is_new_here(self, out: torch.Tensor, args: tuple[Any, ...]) -> bool:
        return out.device.type == self.device_type and not self._on_device(args)

    def _remember_input(self, tensor: torch.Tensor) -> None:
        if len(self._inputs) >= MOST_INPUTS:
            self._inputs = [ref for ref in self._inputs if ref() is not None]
        self._inputs.append(weakref.ref(tensor))

    def _live_inputs(self) -> list[torch.Tensor]:
        return [tensor for ref in self._inputs if (tensor := ref()) is not None]


def _modules() -> list[torch.nn.Module]:
    return instances(torch.nn.Module)
