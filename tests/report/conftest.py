from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.model import (
    Edit,
    Finding,
    Fix,
    Holder,
    LeakTrace,
    Link,
    Location,
    Notice,
    Overhead,
    Place,
    Reason,
    Report,
    Run,
    Sample,
    Suspect,
    Trend,
    Unreadable,
)

FREED = Reason.of("cycles-freed", kinds=None, freed_bytes=3.5 * (1 << 20), per_step=3670)


@pytest.fixture
def growing_run() -> Report:
    """A run whose running loss keeps the graph, as the sentinel reports it."""
    place = Location("train.py", 26, 13, 26, 31)
    return Report(
        findings=(
            Finding(
                "undetached-accumulator",
                "LK101",
                place,
                "`total_loss` keeps the graph of every `loss`",
                help="use loss.item()",
                context="total_loss += loss",
                proved=True,
            ),
        ),
        verdict="growing",
        trends=(
            Trend("graph.nodes", "Nodes", 11, 11, 11, 10560, 960, "growing", 39600),
            Trend("tensors", "tensors", 0, 0, 0, 0, 960, "steady", reason="34 all the way"),
        ),
        suspects=(
            Suspect(
                "graph",
                "Tensor () with grad_fn AddBackward0",
                11,
                7802,
                Holder("local", "total_loss", function="main"),
                LeakTrace(
                    "frame of main(), train.py",
                    (
                        Link("total_loss", "Tensor", suspect=True),
                        Link(".grad_fn", "AddBackward0", 7802 * 960),
                    ),
                ),
                (Place("train.py", 26, "total_loss += loss", 1.0, "main"),),
                ("undetached-accumulator",),
                Reason.of("write", code="total_loss += loss.item()"),
                evidence=Reason.of("past-nodes-alive", per_step=11.0, oldest=None),
            ),
        ),
        notices=(Notice("cyclic-garbage", FREED),),
        run=Run(
            "train.py",
            1000,
            31.2,
            40,
            "optimizer step",
            torch="2.13.0",
            device="cpu",
            stopped_by="stopped: the verdict is certain",
        ),
        overhead=Overhead(9.4, 0.002),
        samples=tuple(
            Sample(
                step,
                step / 100,
                {"host.rss": (300 << 20) + 8000 * step, "graph.nodes": 40 + 11 * step},
            )
            for step in range(0, 1000, 10)
        ),
    )


@pytest.fixture
def checked() -> Report:
    """What a check found: three findings, one of them twice, and a file that it could not read."""
    sum_place = Location("src/train.py", 26, 13, 26, 31)
    kept = Finding(
        "undetached-collection",
        "LK102",
        Location("src/été, 1:2.py", 3, 1, 4, 9),
        "`outputs` keeps 100 % of\nevery graph",
        severity="error",
        context="outputs.append(",
    )
    return Report(
        findings=(
            Finding(
                "undetached-accumulator",
                "LK101",
                sum_place,
                "`total_loss` keeps the graph of every `loss`",
                help="use loss.item()",
                fix=Fix("add a number", (Edit(26, 31, 26, 31, ".item()"),), "unsafe"),
                context="            total_loss += loss",
            ),
            kept,
            replace(kept, location=Location("src/été, 1:2.py", 9, 1, 9, 9)),
            Finding(
                "growing-log",
                "LK310",
                Location("nb.ipynb", 2, 1, 2, 4, 5),
                "the log \x1b[31mgrows",
                severity="info",
            ),
        ),
        unreadable=(Unreadable("src/broken.py", "line 3: invalid syntax <&>"),),
        checked_files=7,
    )
