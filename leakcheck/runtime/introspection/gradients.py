"""Gradients of parameters, read only where no other thread may be giving them up.

While torch frees what `p.grad = None` gave up it lets go of the interpreter's lock, and until that
is done `p.grad` still points there: who reads it in that moment ends the process (torch 2.13; 3 of
16 programs that train in two threads). So it is not read while such a thread runs.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from leakcheck.runtime.introspection import frames

# where threads wait, for each other, for work or for a socket
_WAITING = ("connection.py", "queue.py", "selectors.py", "socket.py", "ssl.py", "subprocess.py")
_WAITS = frozenset((*_WAITING, "thread.py", "threading.py"))
_TORCH = f"{os.sep}torch{os.sep}"


def gradients_of(tensors: Sequence[Any]) -> list[Any]:
    """Return the gradient of each leaf, None of one without; all None if another thread runs."""
    if not tensors:
        return []
    core = sys.modules["torch"]._C
    read = core.TensorBase.grad.__get__
    with core.DisableTorchFunction():
        # at once, in C: between two of them the other threads would have their turn
        return [None] * len(tensors) if _others_run() else list(map(read, tensors))


def have_gradients(parameters: Iterable[Any]) -> bool:
    """Say whether any of these leaves has a gradient; so it is taken where none may be read."""
    return _others_run() or any(one is not None for one in gradients_of(list(parameters)))


def _others_run() -> bool:
    own = threading.get_ident()
    # in no variable: it has this very frame in it, and what a cycle keeps waits for a collection
    return any(
        thread != own and _may_train(frame) for thread, frame in sys._current_frames().items()
    )


def _may_train(frame: FrameType) -> bool:
    """Say whether a thread runs the program's code or torch's, and does not wait."""
    innermost = frame.f_code.co_filename
    if os.path.basename(innermost) in _WAITS and not frames.is_own(innermost):
        return False
    paths = (each.f_code.co_filename for each in frames.outwards(frame))
    return any(_TORCH in path or frames.is_own(path) for path in paths)
