"""Notice every backward pass of the process, without a frame of ours around it.

torch asks `Variable._execution_engine` for the engine, whoever wants gradients: `backward()`,
`torch.autograd.grad`, a sampler, an optimizer that is none of torch's. That attribute is a
descriptor while anyone listens, so that no call of ours stands in a traceback of the program's.
"""

from __future__ import annotations

import sys
import weakref
from types import CodeType, ModuleType
from typing import Any, Protocol

from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.guard import Guard

MODULE = "torch.autograd.variable"
_ENGINE = "_execution_engine"
# who asks for the engine to run it; others put a callback into its queue
_RUNNERS = (
    ("torch.autograd.graph", "_engine_run_backward"),
    ("torch.autograd", "backward"),
    ("torch.autograd", "grad"),
)


class Listener(Protocol):
    """Is told of backward passes, by its guard; not kept alive for it."""

    guard: Guard

    def began_backward(self) -> None:
        """Note that gradients are asked for."""


_listening: weakref.WeakSet[Listener] = weakref.WeakSet()
_owners: list[type] = []  # the class whose attribute is ours, once it is loaded


def listen(listener: Listener) -> None:
    """Tell `listener` from now on of every backward pass that begins."""
    _listening.add(listener)
    if not _owners:
        _owners.append(object)  # asked for once
        when_loaded(MODULE, _know)
    _install()


def stop_listening(listener: Listener) -> None:
    """Tell `listener` nothing any more."""
    _listening.discard(listener)
    if not _listening:
        for owner in _owners[1:]:
            if isinstance(known := vars(owner).get(_ENGINE), _Engine):
                setattr(owner, _ENGINE, known.engine)


class _Engine:
    """Stands for the engine, which it gives to whoever asks."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if _runs_it(sys._getframe(1).f_code):
            for listener in tuple(_listening):
                listener.guard.guarded(listener.began_backward)()
        return self.engine


def _runs_it(code: CodeType) -> bool:
    """Say whether code is that of torch's own functions, whatever others are called."""
    functions = (getattr(sys.modules.get(module), name, None) for module, name in _RUNNERS)
    return any(getattr(function, "__code__", None) is code for function in functions)


def _know(module: ModuleType) -> None:
    owner = getattr(module, "Variable", None)
    if isinstance(owner, type):
        _owners.append(owner)
    if _listening:
        _install()


def _install() -> None:
    for owner in _owners[1:]:
        engine = vars(owner).get(_ENGINE)
        if engine is not None and not isinstance(engine, _Engine):
            setattr(owner, _ENGINE, _Engine(engine))
