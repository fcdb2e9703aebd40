from __future__ import annotations

import json
from dataclasses import replace

from leakcheck.model import DeviceMemory, LedgerPage, LedgerRow, MemoryGrowth, Report
from leakcheck.report.device import memory_lines
from leakcheck.report.json import render as render_json
from leakcheck.report.terminal import render as render_text

PAGE = LedgerPage(
    "after optimizer",
    20,
    (LedgerRow("parameters", 4096, 1), LedgerRow("unexplained", 10240, 20)),
    14336,
    2 << 20,
)
GROWING = DeviceMemory(
    "cuda:0", "device", PAGE, 4096, 512.0, (MemoryGrowth("unexplained", "train.py:9 step", 512.0),)
)


def test_expected_and_unexpected_bytes_are_said_apart():
    assert memory_lines(GROWING) == [
        "cuda:0 memory, after optimizer: 4.0 KiB expected, 10.0 KiB unexpected, 512 B a step",
        "  unexplained +512 B a step  train.py:9 step",
        "  of 14.0 KiB: 10.0 KiB unexplained, 4.0 KiB parameters",
    ]


def test_what_stays_is_told_without_growth():
    steady = replace(
        GROWING, measured="traced", expected_bytes=14336, unexpected_per_step=0.0, grown=()
    )

    assert memory_lines(steady) == [
        "cuda:0 memory, after optimizer (traced, no device): 14.0 KiB expected, 0 B unexpected",
        "  of 14.0 KiB: 10.0 KiB unexplained, 4.0 KiB parameters",
    ]


def test_the_run_report_holds_it_as_text_and_as_json():
    report = Report(verdict="growing", memory=(GROWING,))

    assert "\n".join(memory_lines(GROWING)) in render_text(report)
    (told,) = json.loads(render_json(report))["memory"]
    assert told["page"]["allocated_bytes"] == 14336
    assert told["grown"] == [
        {"category": "unexplained", "site": "train.py:9 step", "bytes_per_step": 512.0}
    ]


def test_the_text_leaves_out_what_does_not_grow():
    steady = replace(GROWING, unexpected_per_step=0.0, grown=())

    assert render_text(Report(verdict="steady", memory=(steady,))) == "leakcheck: steady"


def test_a_report_without_it_stays_as_it_was():
    assert "memory" not in json.loads(render_json(Report(verdict="steady")))


def test_on_the_host_what_lies_outside_tensors_is_not_called_unexplained():
    host = replace(GROWING, device="host")

    assert memory_lines(host)[1:] == [
        "  outside tensors +512 B a step  train.py:9 step",
        "  of 14.0 KiB: 10.0 KiB outside tensors, 4.0 KiB parameters",
    ]
