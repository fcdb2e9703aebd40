"""The calls and loops around a step: has the program left them?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from types import CodeType, FrameType

from leakcheck.runtime.clock import ticks
from leakcheck.runtime.introspection.frames import outwards


@dataclass(frozen=True, slots=True)
class CallsAround:
    """What was running around a step: functions, the outermost first, and loops of the program."""

    functions: tuple[CodeType, ...] = ()
    loops: frozenset[int] = frozenset()

    def are_left(self, frame: FrameType | None) -> bool:
        """Say whether a place is outside of all of them but functions whose loops are seen.

        A trainer elsewhere that still runs may go on with its steps, and so may a loop.
        """
        now = calls_around(frame)
        pairs = zip(self.functions, now.functions, strict=False)
        shared = [one for one, _ in takewhile(lambda pair: pair[0] is pair[1], pairs)]
        inside = shared[-1].co_filename if shared else ""
        return self.loops.isdisjoint(now.loops) and (not inside or inside in ticks.files)


def calls_around(frame: FrameType | None) -> CallsAround:
    """Return what is running around a place."""
    functions = [each.f_code for each in outwards(frame)]
    return CallsAround(tuple(reversed(functions)), frozenset(ticks.enclosing(frame)))
