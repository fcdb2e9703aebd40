from __future__ import annotations

import subprocess
import sys

import pytest

from leakcheck.model import Place, Report, Suspect
from leakcheck.proof import proved
from leakcheck.report.reasons import said
from tests.holders import held_by

SOURCE = """\
import torch

def main(model, loader):
    total_loss = 0.0
    for batch in loader:
        loss = model(batch)
        loss.backward()
        total_loss += loss
"""


@pytest.fixture
def leak(tmp_path) -> Report:
    """A run that grew in a line of a file that is there."""
    path = tmp_path / "train.py"
    path.write_text(SOURCE, encoding="utf-8")
    place = Place(str(path), 8, "total_loss += loss")
    suspect = Suspect("graph", "Tensor", holder=held_by("local `total_loss`"), locations=(place,))
    return Report(verdict="growing", suspects=(suspect,))


def test_a_leak_of_the_run_gets_the_rule_and_the_fix_of_its_line(leak):
    report = proved(leak)

    assert [(f.rule, f.location.line, f.proved) for f in report.findings] == [
        ("undetached-accumulator", 8, True)
    ]
    assert report.suspects[0].rules == ("undetached-accumulator",)
    assert report.findings[0].help
    assert said(report.suspects[0].fix) == report.findings[0].help


def test_a_file_that_is_gone_changes_nothing(leak, tmp_path):
    (tmp_path / "train.py").unlink()

    assert proved(leak) == leak


def test_a_file_that_cannot_be_parsed_changes_nothing(leak, tmp_path):
    (tmp_path / "train.py").write_text("total_loss += (", encoding="utf-8")

    assert proved(leak) == leak


def test_whatever_the_static_side_raises_stays_inside(leak, monkeypatch):
    def crash(paths):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("leakcheck.static.check.check_paths", crash)

    assert proved(leak) == leak


def test_libcst_is_imported_for_a_leak_only():
    program = (
        "import sys; from leakcheck.model import Report; from leakcheck.proof import proved;"
        "proved(Report(verdict='steady')); print('libcst' in sys.modules)"
    )

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert told.stdout == "False\n"
