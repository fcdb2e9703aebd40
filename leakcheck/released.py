"""Objects that must be gone after a block: `with leakcheck.expect_released(model): ...`.

    with leakcheck.expect_released(model, trainer):
        trainer.fit(model)
        del model, trainer

What is made inside the block is added there, `released.watch(engine)`; as a function,
`released = expect_released(model)` first and `released.check()` once all are let go of.
"""

from __future__ import annotations

import gc
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any

from leakcheck.model import Retained

if TYPE_CHECKING:
    from leakcheck.runtime.retained import Memory


class NotReleasedError(AssertionError):
    """Objects that should be gone are alive; `retained` says what keeps each, as values."""

    def __init__(self, message: str, retained: tuple[Retained, ...]) -> None:
        super().__init__(message)
        self.retained = retained


def expect_released(*objects: object, collect: bool = True) -> Expectation:
    """Expect that nothing keeps these objects once a block ends, or once `check` is called.

    Of a `torch.nn.Module` its parameters and buffers, too; of a tensor its memory, which a view or
    the graph may keep without it. `collect`: reference cycles may wait for the collector, which is
    called before it is judged; with False an object must go at once. Nothing is kept alive by it,
    and no method of the objects is called.
    Raises TypeError for what has no weak references, such as a list.
    """
    return Expectation(collect=collect).watch(*objects)


class Expectation:
    """Objects that are to be gone, each known by a weak reference."""

    def __init__(self, *, collect: bool = True) -> None:
        self._collect = collect
        self._whole: list[weakref.ref[Any]] = []
        self._parts: list[list[weakref.ref[Any]]] = []  # of each of them
        self._memory: list[Memory | None] = []  # of each that is a tensor

    def watch(self, *objects: object) -> Expectation:
        """Expect it of these, too."""
        for thing in objects:
            self._whole.append(_weak(thing))
            self._parts.append(_weak_parts(thing))
            self._memory.append(_memory_of(thing))
        return self

    def check(self) -> None:
        """Raise a NotReleasedError if an object is alive that should be gone."""
        __tracebackhide__ = True  # pytest shows the test's line
        if self._collect and (self._alive() or self._left()):
            gc.collect()
        alive, left = self._alive(), self._left()
        if alive or left:
            raise _error(alive, left)

    def _alive(self) -> list[weakref.ref[Any]]:
        """Return what is alive; of a whole that is gone, its parts."""
        found = []
        for whole, parts in zip(self._whole, self._parts, strict=True):
            if whole() is not None:
                found.append(whole)
            else:
                found += [part for part in parts if part() is not None]
        return found

    def _left(self) -> list[Memory]:
        """Return the memory that is left of tensors that are gone."""
        known = zip(self._whole, self._memory, strict=True)
        return [
            memory
            for whole, memory in known
            if memory is not None and whole() is None and memory.is_kept
        ]

    def __enter__(self) -> Expectation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        if kind is None:  # what the block raised has its own cause, and keeps the frames
            self.check()


def _weak(thing: object) -> weakref.ref[Any]:
    try:
        return weakref.ref(thing)
    except TypeError:
        kind = type.__dict__["__name__"].__get__(type(thing))
        raise TypeError(
            f"expect_released: a {kind} cannot be watched, it has no weak references; "
            "pass the objects that are in it, as in expect_released(*objects)"
        ) from None


def _weak_parts(thing: object) -> list[weakref.ref[Any]]:
    from leakcheck.runtime.retained import parts_of

    return [weakref.ref(part) for part in parts_of(thing)]


def _memory_of(thing: object) -> Memory | None:
    from leakcheck.runtime.retained import memory_of

    return memory_of(thing)


def _error(alive: list[weakref.ref[Any]], left: list[Memory]) -> NotReleasedError:
    from leakcheck.report.retained import render
    from leakcheck.runtime.retained import explain

    retained = explain(alive, left)
    return NotReleasedError(render(retained, len(alive) + len(left)), retained)
