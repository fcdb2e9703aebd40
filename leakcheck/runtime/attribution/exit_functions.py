"""What functions registered with atexit keep: C holds them, so that no holder is found."""

from __future__ import annotations

import atexit
from collections import Counter
from dataclasses import replace

from leakcheck.model import LeakTrace
from leakcheck.runtime.attribution.advice import EXIT_FUNCTIONS
from leakcheck.runtime.attribution.lines import LineTracer
from leakcheck.runtime.attribution.suspects import Lead
from leakcheck.runtime.attribution.trace import NO_ROOTS, Told
from leakcheck.runtime.introspection.frames import Site

FEWEST_REGISTERED = 2  # in a window: a program may register one at any time
_KEY = "atexit"


def watch(tracer: LineTracer) -> None:
    """Have each line asked how many functions are registered (40 ns)."""
    tracer.watch(_KEY, atexit._ncallbacks)


def held_by_exits(leads: list[Lead], tracer: LineTracer) -> list[Lead]:
    """Tell of what nothing in Python holds, in a window that registered functions, who does."""
    registered = Counter({site: n for site, n in tracer.credits.get(_KEY, {}).items() if n > 0})
    if sum(registered.values()) < FEWEST_REGISTERED:
        return leads
    return [
        _by_exits(each, registered) if each.told.trace.root in NO_ROOTS else each for each in leads
    ]


def _by_exits(lead: Lead, registered: Counter[Site]) -> Lead:
    told = Told(LeakTrace(str(EXIT_FUNCTIONS)), EXIT_FUNCTIONS, library=False)
    return replace(lead, told=told, lines=registered, made_at=lead.lines + lead.made_at)
