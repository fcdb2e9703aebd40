from __future__ import annotations

import json

from leakcheck.experiments import Isolation, StageRun
from leakcheck.model import Reason, Report, Run, Trend
from leakcheck.report.isolation import render, render_json

RUN = Run("train.py", 1025, 3.0)
GROWING = Report(
    verdict="growing",
    run=RUN,
    trends=(
        Trend("tensors", "tensors", 8.0, 8.0, 8.0, 800.0, 100, "growing"),
        Trend("host.rss", "B", 9000.0, 8000.0, 9999.0, 9e5, 100, "growing"),
        Trend("host.heap", "B", 4915.2, 4900.0, 5000.0, 4e5, 100, "growing"),
        Trend("threads", "threads", 0.0, 0.0, 0.0, 0.0, 100, "steady"),
    ),
)
ISOLATION = Isolation(
    "train.py --lr 1",
    (
        StageRun("as-it-is", "growing", None, GROWING),
        StageRun("data-only", "steady", None, Report(verdict="steady", run=RUN)),
        StageRun("fixed-batch", "unclear", Reason.of("fails-changed", why="a\x1b[31m b")),
    ),
    Reason.of(
        "isolated",
        where=Reason.of("batch-work-keeps", seen=(Reason("stops-with-data"),)),
        leak=Reason.of("held-by", holder="`kept`"),
        at=(),
    ),
)


def test_the_table_fits_eighty_columns_and_ends_with_the_conclusion():
    assert render(ISOLATION) == (
        "leakcheck: isolated train.py --lr 1 in 2 runs\n"
        "\n"
        "stage        verdict  steps  what grows, or why it says nothing\n"
        "as-it-is     growing  1,025  tensors +8, host.heap +4.8 KiB\n"
        "data-only    steady   1,025\n"
        "fixed-batch  unclear      -  changed like this, the program failed: a\\x1b[31m b\n"
        "\n"
        "stops with data only: the work on the batch keeps something of every step; held\n"
        "by `kept`"
    )


def test_json_has_each_stage_with_its_report():
    written = json.loads(render_json(ISOLATION))

    assert list(written) == ["format", "command", "stages", "conclusion"]
    assert [stage["verdict"] for stage in written["stages"]] == ["growing", "steady", "unclear"]
    assert written["stages"][2]["reason"] == {
        "code": "fails-changed",
        "fields": {"why": "a\x1b[31m b"},
        "said": "changed like this, the program failed: a\x1b[31m b",
    }
    assert written["conclusion"]["code"] == "isolated"
    assert written["stages"][0]["report"]["trends"][0]["per_step"] == 8.0
