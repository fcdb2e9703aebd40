"""Notice every backward pass of the process, without a frame of ours around it.

torch asks `Variable._execution_engine` for the engine, whoever wants gradients: `backward()`,
`torch.autograd.grad`, a sampler, an optimizer that is none of torch's. That attribute is a
descriptor while anyone listens, so that no call of ours stands in a traceback of the program's.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, Protocol

from leakcheck.runtime.clock.tap import Tap, Tapped
from leakcheck.runtime.guard import ErrorGuard

MODULE = "torch.autograd.variable"
_ENGINE = "_execution_engine"
# who asks for the engine to run it; others put a callback into its queue
_RUNNERS = (
    ("torch.autograd.graph", "_engine_run_backward"),
    ("torch.autograd", "backward"),
    ("torch.autograd", "grad"),
)


class EngineListener(Protocol):
    """Is told of backward passes, by its guard; not kept alive for it."""

    guard: ErrorGuard

    def began_backward(self) -> None:
        """Note that gradients are asked for."""


class _Engine(Tapped):
    """Stands for the engine, which it gives to whoever asks."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if _runs_it(sys._getframe(1).f_code):
            for listener in _tap.listeners:
                listener.guard.hidden(listener.began_backward)()
        return self.before


def _runs_it(code: CodeType) -> bool:
    """Say whether code is that of torch's own functions, whatever others are called."""
    functions = (getattr(sys.modules.get(module), name, None) for module, name in _RUNNERS)
    return any(getattr(function, "__code__", None) is code for function in functions)


_tap = Tap[EngineListener](MODULE, "Variable", _ENGINE, _Engine, replaces=True)
listen, stop_listening = _tap.listen, _tap.stop_listening
