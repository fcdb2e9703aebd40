"""Who owns which storage: parameters, gradients, optimizer state, buffers, inputs, saved tensors.

Identity is the untyped storage, so views, tied weights and flat buffers count once; wrapper
subclasses (DTensor, quantised tensors) are opened with `__tensor_flatten__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from leakcheck.model import Category
from leakcheck.tracked import instances

if TYPE_CHECKING:
    import torch

Addresses = Callable[["torch.Tensor"], "int | None"]  # where a tensor's storage lies, if there


class SavedTensors:
    """Context manager that knows what autograd keeps for backward, while autograd keeps it.

    Each saved tensor is wrapped in a holder that the graph owns, so a tensor leaves the registry
    when the graph lets it go. Values and version checks are untouched.
    """

    def __init__(self) -> None:
        self._holders: WeakSet[_Holder] = WeakSet()
        self._hooks: Any = None

    def __enter__(self) -> SavedTensors:
        import torch

        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)
        self._hooks.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hooks.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[torch.Tensor]:
        """The tensors saved at this moment."""
        return iter([holder.tensor for holder in self._holders])

    def _pack(self, tensor: torch.Tensor) -> _Holder:
        holder = _Holder(tensor)
        self._holders.add(holder)
        return holder


class _Holder:
    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def _unpack(holder: _Holder) -> torch.Tensor:
    return holder.tensor


def owners(
    addresses: Addresses,
    *,
    models: Sequence[torch.nn.Module] = (),
    optimizers: Sequence[torch.optim.Optimizer] = (),
    inputs: object = (),
    outputs: object = (),
    saved: Iterable[torch.Tensor] = (),
    held: Iterable[torch.Tensor] = (),
) -> dict[int, Category]:
    """Map storage addresses to categories; the first category that claims an address keeps it."""
    claims: Iterable[tuple[Category, Iterable[object]]] = (
        ("parameters", _parameters(models, optimizers)),
        ("gradients", _gradients(models, optimizers)),
        ("optimizer state", _optimizer_state(models, optimizers)),
        ("buffers", (b for model in models for b in model.buffers())),
        ("inputs", (inputs,)),
        ("outputs", (outputs,)),
        ("activations", saved),
        ("temporaries", held),
    )
    owned: dict[int, Category] = {}
    for category, values in claims:
        for value in values:
            for tensor in plain_tensors(value):
                address = addresses(tensor)
                if address is not None:
                    owned.setdefault(address, category)
    return owned


def plain_tensors(value: object) -> Iterator[torch.Tensor]:
    """Every plain tensor inside nested containers and wrapper subclasses."""
    import torch
    from torch.utils import _pytree

    leaves = (value,) if isinstance(value, torch.Tensor) else _pytree.tree_leaves(value)
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            continue
        flatten = getattr(type(leaf), "__tensor_flatten__", None)
        if flatten is None:
            yield leaf
            continue
        names, _ = flatten(leaf)
        for name in names:
            yield from plain_tensors(getattr(leaf, name))


def tensors_in_python() -> list[torch.Tensor]:
    """Every tensor the collector knows, alive by any reference; 26-170 ms with torch loaded."""
    import torch

    return instances(torch.Tensor)


def _parameters(
    models: Sequence[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer]
) -> Iterator[torch.Tensor]:
    for model in models:
        yield from model.parameters()
    if not models:
        yield from _trained(optimizers)


def _gradients(
    models: Sequence[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer]
) -> Iterator[torch.Tensor]:
    for parameter in [*(p for model in models for p in model.parameters()), *_trained(optimizers)]:
        for name in ("grad", "main_grad"):  # Megatron accumulates into main_grad
            gradient = getattr(parameter, name, None)
            if gradient is not None:
                yield gradient


def _optimizer_state(
    models: Sequence[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer]
) -> Iterator[object]:
    """States, tensor options such as a capturable lr, and master copies the models do not know."""
    for optimizer in optimizers:
        yield from optimizer.state.values()
        for group in optimizer.param_groups:
            yield [value for key, value in group.items() if key != "params"]
    if models:
        yield from _trained(optimizers)


def _trained(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[torch.Tensor]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]
