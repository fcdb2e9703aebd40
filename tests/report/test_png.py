from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from leakcheck.errors import UsageError
from leakcheck.model import Report, Sample
from leakcheck.report.png import draw


def size(png: bytes) -> tuple[int, int]:
    """Read width and height from the header of a PNG file."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_each_chart_has_its_row(growing_run):
    pytest.importorskip("matplotlib")
    samples = tuple(Sample(step, step, {"host.rss": 4096 * step}) for step in range(9))

    assert size(draw(growing_run)) == (1140, 795)
    assert size(draw(replace(growing_run, samples=samples))) == (1140, 435)


def test_names_of_the_program_are_not_read_as_mathematics(growing_run):
    pytest.importorskip("matplotlib")
    run = replace(growing_run.run, command="train.py $x{ $")

    assert size(draw(replace(growing_run, run=run))) == (1140, 795)


def test_a_report_without_samples_is_drawn_all_the_same():
    pytest.importorskip("matplotlib")

    assert size(draw(Report(verdict="steady"))) == (1140, 435)


def test_without_matplotlib_one_is_told_what_to_do(growing_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(UsageError, match="--png needs matplotlib; --svg draws the same"):
        draw(growing_run)
