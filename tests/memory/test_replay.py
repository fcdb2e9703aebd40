from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from leakcheck.memory.policies import POLICIES, native
from leakcheck.memory.replay import replay, reproduce, smallest_limit
from leakcheck.memory.rounding import MIB, NativeConfig, parse_roundup
from leakcheck.memory.trace import Event, Mark, Trace
from leakcheck.memory.verdict import judge

RECORDED = [
    "kk_128_forward_",
    "kk_128_forward_mixed",
    "kk_128_fullstep_",
    "kk_128_logs_forward",
    "kk_256_forward_",
    "kk_256_forward_mixed",
    "kk_256_fullstep_",
    "kk_512_forward_",
    "kk_512_forward_mixed",
    "kk_512_fullstep_",
]


@pytest.mark.parametrize("name", RECORDED)
def test_every_block_and_segment_comes_out_where_it_was_recorded(
    name: str, recorded: dict[str, Trace]
):
    trace = recorded[name]

    fidelity = reproduce(trace)

    assert fidelity.exact
    assert fidelity.blocks == sum(event.kind == "alloc" for event in trace.events)
    assert fidelity.allocated_bytes == trace.final_allocated_bytes
    assert fidelity.reserved_bytes == trace.final_reserved_bytes


def test_another_rounding_is_not_taken_for_the_recorded_one(recorded: dict[str, Trace]):
    config = NativeConfig(roundup_divisions=parse_roundup("2"))

    assert not reproduce(recorded["kk_128_fullstep_"], config).exact


def test_a_changed_address_is_noticed(recorded: dict[str, Trace]):
    trace = recorded["kk_128_forward_"]
    at = max(n for n, event in enumerate(trace.events) if event.kind == "alloc")
    moved = trace.events[at]._replace(block=trace.events[at].block + 512)

    fidelity = reproduce(replace(trace, events=(*trace.events[:at], moved)))

    assert fidelity.same_blocks == fidelity.blocks - 1


@pytest.mark.parametrize(
    ("name", "policy", "reserved_mib", "limit_mib"),
    [
        ("kk_512_forward_mixed", "native", 38638, 38636),
        ("kk_512_forward_mixed", "autogrowth", 38399, 38399),
        ("kk_512_fullstep_", "native", 60142, 53297),
        ("kk_512_fullstep_", "autogrowth", 60053, 53184),
    ],
)
def test_the_smallest_limit_lies_below_the_peak_because_the_cache_is_released_first(
    name: str, policy: str, reserved_mib: int, limit_mib: int, recorded: dict[str, Trace]
):
    trace, make = recorded[name], POLICIES[policy]

    least = smallest_limit(trace, make)

    assert replay(trace, make(None)).peak_reserved_bytes // MIB == reserved_mib
    assert abs(least // MIB - limit_mib) <= 2
    assert replay(trace, make(least)).fits


def test_a_trace_that_does_not_fit_says_where_it_failed():
    trace = Trace((Event("alloc", 1, 30 * MIB), Event("alloc", 2, 40 * MIB)))

    run = replay(trace, POLICIES["native"](64 * MIB))

    assert (run.fits, run.failed_at) == (False, 1)
    assert run.failure == "40.0 MiB do not fit: 30.0 MiB reserved under a limit of 64.0 MiB"


def test_moments_hold_the_peaks_of_their_own_stretch():
    events = (Event("alloc", 1, 8 * MIB), Event("free", 1), Event("alloc", 2, 2 * MIB))

    run = replay(Trace(events), POLICIES["ideal"](None), stops=(2, 3))

    assert [m.peak_requested_bytes for m in run.moments] == [8 * MIB, 2 * MIB]
    assert [m.requested_bytes for m in run.moments] == [0, 2 * MIB]
    assert run.peak_requested_bytes == 8 * MIB


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "steps found"])
@pytest.mark.parametrize(
    ("variant", "verdict"),
    [
        ({}, "steady"),
        ({"varying": True}, "fragmentation"),
        ({"leaked_bytes": 3 * MIB}, "leak"),
        ({"leaked_bytes": 4}, "leak"),
        ({"varying": True, "leaked_bytes": MIB}, "leak"),
    ],
    ids=["steady", "varying sizes", "leak", "smallest leak", "leak among varying sizes"],
)
def test_leak_fragmentation_and_steady_are_told_apart(
    variant: dict[str, int], verdict: str, marked: bool, twelve_steps: Callable[..., Trace]
):
    trace = twelve_steps(**variant)

    chosen = trace if marked else replace(trace, marks=())
    report = judge(chosen, {"native": native()}, bisect=False)

    assert report.verdict == verdict
    if verdict == "leak":
        asked = variant["leaked_bytes"]
        assert report.live.per_step == max(512, asked)
        assert [(s.bytes_per_step, s.blocks_per_step) for s in report.grown] == [(asked, 1.0)]
    if verdict == "fragmentation":
        assert report.cure is not None
        assert report.cure.setting == "expandable_segments:True"


def test_the_site_that_grows_is_named(twelve_steps: Callable[..., Trace]):
    trace = twelve_steps(leaked_bytes=4096)
    events = tuple(e._replace(site=0) if e.block < 0 else e for e in trace.events)

    report = judge(replace(trace, events=events, sites=("train.py:41 step",)), bisect=False)

    assert [site.site for site in report.grown] == ["train.py:41 step"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_leak_is_a_leak_under_every_policy(policy: str):
    events: list[Event] = []
    for step in range(12):
        events += [Event("alloc", step, 40 * MIB), Event("alloc", 100 + step, 5 * MIB)]
        events.append(Event("free", 100 + step))
    marks = tuple(Mark(3 * step + 3, "end", step) for step in range(12))

    report = judge(Trace(tuple(events), marks=marks), {policy: POLICIES[policy]}, bisect=False)

    assert report.verdict == "leak"
    assert report.rows[0].reserved_per_step == pytest.approx(40 * MIB, rel=0.1)


@pytest.mark.parametrize("name", RECORDED)
def test_one_recorded_step_of_a_real_program_is_no_leak(recorded: dict[str, Trace], name: str):
    # each holds one pass; its layers repeat like steps, and their activations stay
    report = judge(recorded[name], {"native": native()}, bisect=False)

    assert report.verdict == "unclear"


def test_the_layers_of_a_pass_are_told_from_steps_by_what_they_keep(recorded: dict[str, Trace]):
    report = judge(recorded["kk_128_forward_"], {"native": native()}, bisect=False)

    assert report.live.reason == (
        "live bytes grow 169 MiB each time the requests repeat, and that is much of what each time "
        "allocates: steps that leak, or the layers of one pass; mark the steps to tell"
    )


def test_few_steps_are_unclear():
    events = tuple(Event("alloc", n, MIB) for n in range(4))
    marks = tuple(Mark(n + 1, "end", n) for n in range(4))

    report = judge(Trace(events, marks=marks))

    assert (report.verdict, report.live.reason) == ("unclear", "4 steps, 6 are needed")


def test_an_empty_trace_is_unclear():
    report = judge(Trace(()))

    assert report.verdict == "unclear"
    assert [row.peak_reserved_bytes for row in report.rows] == [0, 0, 0, 0]


@pytest.mark.parametrize(("leaked", "verdict"), [(True, "leak"), (False, "steady")])
@pytest.mark.parametrize("marked", [True, False], ids=["marked", "steps found"])
def test_one_small_block_a_step_shows_among_inputs_of_varying_size(
    leaked: bool, verdict: str, marked: bool
):
    chance, events, marks = random.Random(5), [], []
    for step in range(24):
        size = chance.randrange(10_000, 100_000)  # the input, alive until the next one
        events += [Event("alloc", 3 * step, size), Event("alloc", 3 * step + 1, MIB)]
        events += [Event("free", 3 * step - 3)] if step else []
        events += [Event("alloc", 3 * step + 2, 4)] if leaked else []
        events.append(Event("free", 3 * step + 1))
        marks.append(Mark(len(events), "end", step))
    trace = Trace(tuple(events), marks=tuple(marks) if marked else ())

    report = judge(trace, {"native": native()}, bisect=False)

    assert report.verdict == verdict
    if leaked:
        assert (report.live.per_step, report.live.grows) == (512, True)
