"""What a look tells first: what gains evenly, or what rises in stairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leakcheck.runtime.judgement.harmless import Excuses
from leakcheck.runtime.judgement.looks import Looks
from leakcheck.runtime.judgement.span import LoopSpan
from leakcheck.runtime.readings.series import Series

MIB = 1 << 20


def looks(blocks_per_step: int) -> Looks:
    """Return looks at 740 steps: blocks gain evenly, and the heap 1 MiB at each 300th step."""
    quick, slow = Series(2048), Series(256)
    for step in range(1, 741):
        quick.append(step, 0.0, {"host.heap": 100 * MIB + step // 300 * MIB})
        if step % 40 == 0:
            slow.append(step, 0.0, {"python.blocks": 1000 + blocks_per_step * step})
    watch: Any = SimpleNamespace(sources=[quick, slow], quick=quick, slow=slow)
    return Looks(watch, LoopSpan(0, 5000), Excuses(), tolerance_bytes=1024)


@pytest.mark.parametrize(
    ("blocks_per_step", "found"),
    [(0, ["host.heap"]), (1, ["host.heap"]), (40, ["host.heap", "python.blocks"])],
    ids=["none", "below the tolerance", "above it"],
)
def test_stairs_are_told_unless_something_that_counts_gains_evenly(blocks_per_step, found):
    told = looks(blocks_per_step).take(740)

    assert [one.resource for one in told] == found
    assert [one.resource for one in told if one.stairs] == (found if len(found) == 1 else [])
