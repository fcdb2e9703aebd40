from __future__ import annotations

import pytest

from leakcheck.runtime.attribution.window import Window

STEPS = 24


@pytest.fixture
def through_a_window():
    """Take forty steps, then some in a window; return its suspects and notices."""

    def through(step, growing=("graph.nodes", "tensors")):
        for _ in range(40):
            step()
        window = Window(dict.fromkeys(growing, 0.0))
        window.open()
        for _ in range(STEPS):
            step()
            window.step()
        return window.close()

    return through
