"""Storages of the fake device, with what its kernels take that fake tensors do not show.

The workspaces of each thread that multiplies matrices, the scratch memory of kernels, and sums of
gradients, which autograd makes in place on a device but never with fake tensors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from leakcheck.memory import scratch
from leakcheck.memory.blocks import Allocator
from leakcheck.memory.fake_device import DEVICE_TYPE
from leakcheck.memory.ledger import LiveBlock
from leakcheck.memory.profiles import DeviceProfile
from leakcheck.memory.storages import StorageTrace, operator_name
from leakcheck.memory.workspaces import cublas_bytes, cublaslt_bytes, uses_cublaslt
from leakcheck.model import Category

MATRIX_PRODUCTS = frozenset(
    (
        *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot", "addbmm"),
        *("_scaled_mm", "_addmm_activation"),
    )
)
WHOLE_PRODUCTS = frozenset(["linear", "matmul"])  # inference mode does not take them apart
PRODUCTS = MATRIX_PRODUCTS | WHOLE_PRODUCTS
CONVOLUTIONS = frozenset(("convolution", "convolution_backward", "_cudnn_rnn", "lstm", "gru"))
_USES_CUDNN = CONVOLUTIONS | {scratch.CUDNN}


class DeviceTrace(StorageTrace):  # type: ignore[no-untyped-call]
    """Storages and workspaces of one device; `workspace_bytes` None for what cuBLAS takes there."""

    def __init__(
        self, profile: DeviceProfile, allocator: Allocator, workspace_bytes: int | None = None
    ) -> None:
        super().__init__(DEVICE_TYPE, allocator)
        self.profile = profile
        self.workspace_bytes = workspace_bytes
        self.loads_cudnn = False
        self._added: int | None = None  # the storage that autograd adds a gradient to
        # that storage; the sum's storage, its size and site
        self._sum: tuple[int, int, int, int] | None = None
        self._workspaces: dict[tuple[str, str], int] = {}  # library and thread -> key of the block
        self._categories: dict[int, Category] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator, then ask for what its kernel needs after its outputs."""
        name = operator_name(func)
        here = self._on_device(args)
        self.loads_cudnn |= here and name in _USES_CUDNN
        if name == "add" and here and _engine_adds():
            self._added = args[0].untyped_storage()._cdata
        out = super().__torch_dispatch__(func, types, args, kwargs)
        self._added = None
        if here and name in PRODUCTS:
            self._open_handle(name, args, kwargs or {})
        elif here and self.device_type == DEVICE_TYPE:
            self._pass_through(scratch.requests(name, args, out, self.profile))
        return out

    def settled(self) -> Allocator:
        """The allocator, with nothing left open: its counts are those of this moment."""
        self._settle()
        return self.allocator

    def _follow_peaks(self) -> None:
        """Raise the peaks: more is allocated than a moment ago."""

    def _place(self, key: int, size: int, site: int = -1) -> None:
        """Give a storage its block; that of a sum of gradients waits, as it may be the old one."""
        self._settle()
        if self._added is not None:
            self._sum, self._added = (self._added, key, size, site), None
        elif key not in self._live:
            super()._place(key, size, site)

    def _settle(self) -> None:
        """Something else came first: somebody holds the old gradient, and the sum is new."""
        if self._sum is not None:
            (_, *sum_of_both), self._sum = self._sum, None
            super()._place(*sum_of_both)

    def _died(self, key: int) -> None:
        with self._lock:
            if self._sum is not None and self._sum[0] == key and self._sum[2] == self._live[key][2]:
                self._live[self._sum[1]] = self._live.pop(key)
                self._sum = None
            else:
                self._settle()
                super()._died(key)

    def _seen(self, func: Any, args: tuple[Any, ...], out: Any) -> Any:
        return scratch.outputs(operator_name(func), args, out)

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

    def _pass_through(self, requests: scratch.RequestSizes) -> None:
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

    def _on_device(self, args: tuple[Any, ...]) -> bool:
        for value in args:
            if isinstance(value, torch.Tensor):
                if value.device.type == self.device_type:
                    return True
            elif isinstance(value, (list, tuple)) and self._on_device(tuple(value)):
                return True
        return False


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
