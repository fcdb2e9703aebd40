"""The changes that the stages of `isolate` make to a program, inside its own process.

Nothing of the program is edited: what it calls in torch, and what it calls to log, is replaced
before it is loaded. Each change counts what it did, so that one that did nothing is not a result.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from types import MethodType, ModuleType
from typing import Any

from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.clock.loaders import LOADER_MODULE

FEEDS_FROM = 0.1  # of the steps begin with a batch of it: one batch may serve several steps
FEWEST_FED = 8
Open = Callable[[Any], Iterator[Any]]


class Loaders:
    """Which DataLoader feeds the steps: numbered in the order the program first goes over them."""

    def __init__(self) -> None:
        self._numbers: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._opened: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._count = 0
        self._fetched: int | None = None
        self._fed: Counter[int] = Counter()
        self._steps = 0

    def number(self, loader: object) -> int:
        """Return the number of a loader, a new one if it was not seen before."""
        if loader not in self._numbers:
            self._numbers[loader] = self._count
            self._count += 1
        return self._numbers[loader]

    def step(self) -> None:
        """Note that a step is over: the loader that was read last has fed it."""
        self._steps += 1
        if self._fetched is not None:
            self._fed[self._fetched] += 1
        self._fetched = None

    def feeding(self) -> int | None:
        """Return the number of the loader that feeds the steps, None when there is none."""
        if not self._fed:
            return None
        number, fed = self._fed.most_common(1)[0]
        return number if fed >= max(FEWEST_FED, FEEDS_FROM * self._steps) else None

    def observe(self) -> None:
        """Note which loader each batch comes from; the batches pass as they are."""

        def fetches(module: ModuleType) -> None:
            reader = getattr(module, "_BaseDataLoaderIter", None)
            if reader is None:
                return
            fetch = reader.__next__

            def observed(reading: Any) -> Any:
                self._fetched = self._opened.get(reading)
                return fetch(reading)

            reader.__next__ = observed

        def opened(loader: Any, open_loader: Open) -> Iterator[Any]:
            self.number(loader)
            return open_loader(loader)

        def opened_by_torch(loader: Any, reading: Any) -> None:
            self._opened[reading] = self.number(loader)

        when_loaded(LOADER_MODULE, fetches)
        _when_opened(opened, opened_by_torch)

    def drain(self, number: int, drain: Callable[[Any, Open], None]) -> None:
        """Hand loader `number` to `drain(loader, open)`, which does not return, when it is read."""

        def open_or_drain(loader: Any, open_loader: Open) -> Iterator[Any]:
            if self.number(loader) == number:
                drain(loader, open_loader)
            return open_loader(loader)

        _when_opened(open_or_drain)

    def fix(self, changed: Counter[str]) -> None:
        """Let every loader give its first batch again and again, as many times as it is long."""
        firsts: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

        def repeat(loader: Any, open_loader: Open) -> Iterator[Any]:
            if loader not in firsts:
                for batch in open_loader(loader):
                    firsts[loader] = batch
                    break
                else:
                    return
            left = _length(loader)
            while left is None or left > 0:
                changed["batches"] += 1
                left = left if left is None else left - 1
                yield copied(firsts[loader])

        _when_opened(repeat)


def _when_opened(
    change: Callable[[Any, Open], Iterator[Any]],
    opened_by_torch: Callable[[Any, Any], None] | None = None,
) -> None:
    """Answer `iter(loader)` by `change(loader, open)`, for subclasses with an own one too."""

    def wrap(kind: Any) -> None:
        open_loader = kind.__iter__

        def opened(loader: Any) -> Any:
            if _defines_iter(type(loader)) is kind:
                return change(loader, open_loader)
            return open_loader(loader)  # from the subclass's own, by super()

        opened.changes = True  # type: ignore[attr-defined]
        kind.__iter__ = opened

    def wrap_subclass(loader: Any) -> None:
        kind = _defines_iter(type(loader))
        if not hasattr(kind.__iter__, "changes"):
            wrap(kind)

    def start(module: ModuleType) -> None:
        if opened_by_torch is not None:
            _after_call(module.DataLoader, "__iter__", opened_by_torch)
        wrap(module.DataLoader)
        _after_call(module.DataLoader, "__init__", lambda loader, _: wrap_subclass(loader))

    when_loaded(LOADER_MODULE, start)


def _defines_iter(kind: type) -> Any:
    return next(base for base in kind.__mro__ if "__iter__" in vars(base))


def copied(batch: Any) -> Any:
    """Copy the containers of a batch, not the tensors in them: programs pop and replace items."""
    if type(batch) in (list, tuple):
        return type(batch)(copied(part) for part in batch)
    if type(batch) is dict:
        return {key: copied(part) for key, part in batch.items()}
    return copy.copy(batch) if hasattr(batch, "data") and hasattr(batch, "keys") else batch


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


def without_backward(changed: Counter[str], stepped: Callable[[object], None]) -> None:
    """Let backward() and optimizer.step() do nothing; `stepped(optimizer)` still hears of steps.

    The closure that an optimizer is given is called once: it holds the forward pass.
    """

    def backward(*_: object, **__: object) -> None:
        changed["backward"] += 1

    def step(optimizer: Any, closure: Any = None, *_: object, **__: object) -> Any:
        changed["optimizer.step"] += 1
        loss = closure() if callable(closure) else None
        stepped(optimizer)
        return loss

    def replace_step(optimizer: Any, _: object) -> None:
        optimizer.step = MethodType(step, optimizer)

    def change(torch: ModuleType) -> None:
        torch.Tensor.backward = torch.autograd.backward = backward
        _after_call(torch.optim.Optimizer, "__init__", replace_step)
        scaler = getattr(sys.modules.get("torch.amp.grad_scaler"), "GradScaler", None)
        if scaler is not None:  # it insists on gradients unless it is switched off
            _after_call(scaler, "__init__", lambda one, _: setattr(one, "_enabled", False))

    when_loaded("torch", change)


def _after_call(of: Any, name: str, act: Callable[[Any, Any], None]) -> None:
    call = getattr(of, name)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(self, *args, **kwargs)
        act(self, result)
        return result

    setattr(of, name, called)
