"""Reports at SIGTERM where the program leaves it to the default, which is what it sees there.

Who finds a handler may call it, or leave the signal to it: Lightning does not save its state then.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, cast

from leakcheck.runtime.guard import in_main_thread

Handler = Callable[[int, FrameType | None], None]


def report_at_sigterm(act: Callable[[], object]) -> None:
    """Call `act` before the process dies of SIGTERM, unless the program handles it."""
    set_handler, get_handler = signal.signal, signal.getsignal
    if not in_main_thread() or get_handler(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def report_and_die(number: int, frame: FrameType | None) -> None:
        set_handler(signal.SIGTERM, signal.SIG_DFL)
        act()
        os.kill(os.getpid(), signal.SIGTERM)

    set_handler(signal.SIGTERM, report_and_die)
    _hide(report_and_die)
    _keep_from_children(report_and_die, set_handler, get_handler)


def _hide(ours: Handler) -> None:
    """Let `signal` tell of the default while the handler is in its place."""
    set_handler, get_handler, pid = signal.signal, signal.getsignal, os.getpid()

    def shown(found: Any) -> Any:
        return signal.SIG_DFL if found is ours else found

    @wraps(set_handler)
    def set_seen(signalnum: int, handler: Any) -> Any:
        default = isinstance(handler, int) and handler == signal.SIG_DFL
        ends = default and signalnum == signal.SIGTERM and os.getpid() == pid
        put = ours if ends else handler
        return shown(set_handler(signalnum, put))

    @wraps(get_handler)
    def get_seen(signalnum: int) -> Any:
        return shown(get_handler(signalnum))

    signal.signal, signal.getsignal = cast("Any", set_seen), cast("Any", get_seen)


def _keep_from_children(
    ours: Handler, set_handler: Callable[..., Any], get_handler: Callable[..., Any]
) -> None:
    # a forked child forgets a signal that comes before Python has settled in it: with a handler
    # in place of the default, a worker that is terminated at once would live on
    def before() -> None:
        if get_handler(signal.SIGTERM) is ours and in_main_thread():
            set_handler(signal.SIGTERM, signal.SIG_DFL)
            taken.append(True)

    def after_in_parent() -> None:
        if taken:
            taken.clear()
            set_handler(signal.SIGTERM, ours)

    taken: list[bool] = []
    os.register_at_fork(before=before, after_in_parent=after_in_parent)
