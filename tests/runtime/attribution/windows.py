"""A step taken again and again, seen through an attribution window."""

from __future__ import annotations

from leakcheck.runtime.attribution.window import Window

STEPS = 24


def through_a_window(step, growing=("graph.nodes", "tensors")):
    """Take forty steps, then some in a window; return its suspects and notices."""
    for _ in range(40):
        step()
    window = Window(dict.fromkeys(growing, 0.0))
    window.open()
    for _ in range(STEPS):
        step()
        window.step()
    found = window.close()
    return found.suspects, found.notices
