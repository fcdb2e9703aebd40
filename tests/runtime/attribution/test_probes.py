"""What the lines are credited with that add to the heap, to threads, to Python's blocks."""

from __future__ import annotations

from collections import Counter

import pytest

from leakcheck.model import LeakTrace
from leakcheck.runtime.attribution.lines import LineTracer
from leakcheck.runtime.attribution.probes import are_too_small, leads
from leakcheck.runtime.attribution.suspects import Lead
from leakcheck.runtime.attribution.trace import Told
from leakcheck.runtime.introspection.frames import Site
from tests.holders import held_by

STEPS = 24
TOLD = Told(LeakTrace("global `log`"), held_by("global `log`"), library=False)
HEAP_PER_STEP = 6144.0
DECODE, BACKWARD = Site("train.py", 24, "decode"), Site("train.py", 42, "main")


def traced() -> LineTracer:
    """Return what lines were seen to add: buffers on one of them, now and then a block on one."""
    tracer = LineTracer()
    tracer.credits["host.heap"] = Counter({DECODE: 22 * 6144})
    tracer.credits["python.blocks"] = Counter({BACKWARD: 19})
    return tracer


def test_a_block_a_step_beside_kilobytes_of_the_heap_is_not_what_leaks():
    growing = {"host.heap": HEAP_PER_STEP, "python.blocks": 1.07}

    (lead,) = leads(growing, traced(), STEPS, alone=True)

    assert (lead.kind, lead.bytes_per_step) == ("native", HEAP_PER_STEP)
    assert list(lead.lines) == [DECODE]


def test_as_many_blocks_as_may_have_grown_the_heap_are_python_objects():
    growing = {"host.heap": 400.0, "python.blocks": 1.0}

    (lead,) = leads(growing, traced(), STEPS, alone=True)

    assert (lead.kind, list(lead.lines)) == ("object", [BACKWARD])


def test_blocks_whose_heap_is_not_known_to_grow_are_python_objects():
    (lead,) = leads({"python.blocks": 1.0}, traced(), STEPS, alone=True)

    assert lead.kind == "object"


def test_logs_of_numbers_are_not_what_a_heap_gains_that_grows_far_more():
    log = Lead("object", "list of float", TOLD, bytes_per_step=41.0, plain=True)
    arrays = Lead("object", "list of ndarray", TOLD, bytes_per_step=41.0)

    assert are_too_small([log, log], {"host.heap": 4096.0})
    assert not are_too_small([log], {"host.heap": 150.0})
    assert not are_too_small([log, arrays], {"host.heap": 4096.0})
    assert not are_too_small([], {"host.heap": 4096.0})


def sharing(added: int, visits: int) -> LineTracer:
    """Return how many blocks of shared memory one line was seen to add, and how often it ran."""
    tracer = LineTracer()
    tracer.credits["shared-memory"] = Counter({DECODE: added})
    tracer.visits[DECODE.path, DECODE.line] = visits
    return tracer


@pytest.mark.parametrize(
    ("added", "visits", "per_step"),
    [(24, 24, 1.0), (24, 48, 1.0), (48, 24, 2.0), (8, 8, 8 / 24)],
    ids=["each step", "a call on two lines", "two each step", "at every third"],
)
def test_blocks_of_shared_memory_that_come_in_time_with_a_line_are_its_own(added, visits, per_step):
    (lead,) = leads({"shared-memory": per_step}, sharing(added, visits), STEPS, alone=False)

    assert (lead.kind, lead.objects_per_step, list(lead.lines)) == (
        "shared-memory",
        per_step,
        [DECODE],
    )


def test_blocks_that_come_as_time_passes_may_be_another_process_s():
    assert leads({"shared-memory": 1.25}, sharing(30, 24), STEPS, alone=False) == []
    assert leads({"shared-memory": 0.55}, sharing(13, 24), STEPS, alone=False) == []
