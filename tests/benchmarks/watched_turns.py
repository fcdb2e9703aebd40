"""What watching adds to a step of about 5 ms, measured in turns of one process.

    python tests/benchmarks/watched_turns.py [cpu | cuda | cuda-busy]

A turn of steps is not watched, two are, one is not; the difference of the first and the last, which
are alike, is the noise. Each turn ends with a synchronisation, so that what is measured is all of
its steps. In a steady loop quick readings are 32 steps apart, so a turn has as many. A step of
"cuda" waits for the host that launches its kernels; one of "cuda-busy" waits for the device. Where
turns differ by more than watching takes, as on a host, the time inside `step()` tells more. Looks
at the heap are each a third more steps after the last, so the first minute is told by itself.
"""

from __future__ import annotations

import json
import math
import sys
import time
from statistics import fmean, median
from typing import Any

import torch
from gpu_loops import Attention, Loop, tokens, training

import leakcheck

TURN_STEPS, TURNS = 32, 60
WATCHED_BEFORE = 10_000  # steps
LOOPS = {  # about 5 ms a step on an H200, and on a host of two cores
    "cuda": Loop(lambda: Attention(layers=3), tokens(8, 128)),
    "cuda-busy": Loop(lambda: Attention(1024, layers=2), tokens(8, 256)),
    "cpu": Loop(lambda: Attention(32, layers=5, heads=4), tokens(2, 16)),
}


def measure(name: str) -> dict[str, Any]:
    """Return medians in microseconds a step, and what the sentinel says itself."""
    loop, device = LOOPS[name], name.partition("-")[0]
    model, optimizer = loop.make(device)
    sentinel = leakcheck.Sentinel()
    in_steps: list[float] = []

    def turn(steps: int, *, watched: bool) -> float:
        _synchronise(device)
        began = time.perf_counter()
        for _ in range(steps):
            for _ in training(loop, device, 1, model, optimizer):
                pass
            if watched:
                entered = time.perf_counter()
                sentinel.step()
                in_steps.append(time.perf_counter() - entered)
        _synchronise(device)
        return (time.perf_counter() - began) * 1e6 / steps

    turn(50, watched=False)
    before_us = turn(WATCHED_BEFORE, watched=True)
    in_step_before_us = fmean(in_steps) * 1e6
    in_steps.clear()
    order = (False, True, True, False)
    turns = [[turn(TURN_STEPS, watched=each) for each in order] for _ in range(TURNS)]
    firsts, seconds, thirds, lasts = zip(*turns, strict=True)
    sentinel.stop()
    report = sentinel.report()
    added = sorted((b + c - a - d) / 2 for a, b, c, d in turns)
    return {
        "bare_us": round(median((*firsts, *lasts)), 1),
        "watched_us": round(median((*seconds, *thirds)), 1),
        "difference_us": round(median(added), 1),
        "difference_95_us": [round(added[rank], 1) for rank in _ranks(len(added))],
        "of_alike_us": round(median(d - a for a, _, _, d in turns), 1),
        "verdict": report.verdict,
        "in_step_us": round(fmean(in_steps) * 1e6, 1),  # looks at the heap included
        "inside_us": round(report.overhead.per_step_us, 1),
        "before": {
            "steps": WATCHED_BEFORE,
            "watched_us": round(before_us, 1),
            "in_step_us": round(in_step_before_us, 1),
        },
    }


def _ranks(count: int) -> tuple[int, int]:
    """Where the bounds of a median lie among sorted values, at 95 %: by the normal binomial."""
    off = round(0.98 * math.sqrt(count))
    return max(count // 2 - off, 0), min(count // 2 + off, count - 1)


def _synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1] if len(sys.argv) > 1 else "cpu"), indent=1))
