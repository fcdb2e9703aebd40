"""A container of an installed class may be limited by that class."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.report.reasons import said
from leakcheck.runtime.attribution.library import logs_of_libraries
from leakcheck.runtime.attribution.window import Findings
from leakcheck.runtime.prospects import prospects_of
from tests.holders import held_by

RING = """
    class {name}:
        def __init__(self, capacity):
            self.capacity, self.data, self.at = capacity, [], 0

        def add(self, x):
            {statement}
    """


@pytest.fixture
def limit_of(tmp_path, monkeypatch):
    """Say what limits `data` of a library class that the program adds to."""

    def limit_of(statement: str, name: str) -> str:
        package = name.lower()
        folder = tmp_path / "lib" / "python3" / "site-packages"
        folder.mkdir(parents=True)
        (folder / f"{package}.py").write_text(
            textwrap.dedent(RING.format(name=name, statement=statement))
        )
        monkeypatch.syspath_prepend(folder)
        __import__(package)
        places = (Place(str(tmp_path / "program.py"), 1, "ring.add(x)"),)
        holder = f"attribute `{name}.data`, from local `ring` in main()"
        suspect = Suspect("tensor", "", holder=held_by(holder), locations=places)
        return said(prospects_of([suspect], Findings()).limits)

    return limit_of


def test_a_limit_of_the_class_is_told_with_its_place(limit_of):
    told = limit_of("if len(self.data) < self.capacity: self.data.append(x)", "LimitedRing")

    assert told == (
        "attribute `LimitedRing.data`, from local `ring` in main() grows, "
        "limited at limitedring.py:7 (len(self.data) < self.capacity)"
    )


def test_a_class_without_a_limit_sets_none(limit_of):
    assert limit_of("self.data.append(x)", "EndlessRing") == ""


RECORDER = """
    class Recorder:
        def __init__(self):
            self.losses = []
    """

RECORDED = replace(held_by("attribute `Recorder.losses`, from global `it`"), module="recorder")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return a number a step that an installed class keeps."""
    folder = tmp_path / "lib" / "python3" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "recorder.py").write_text(textwrap.dedent(RECORDER))
    monkeypatch.syspath_prepend(folder)
    __import__("recorder")
    yield Suspect(
        "tensor",
        "Tensor (scalar) float32",
        1.0,
        96.0,
        RECORDED,
    )
    sys.modules.pop("recorder")


@pytest.mark.parametrize("kind", ["Tensor", "TensorBase", "list of Tensor"])  # fastai has its own
def test_a_library_s_log_of_numbers_is_one(recorded, kind):
    log = replace(recorded, what=f"{kind} (scalar) float32")

    assert logs_of_libraries([log], 1024) == (log,)


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "graph"},
        {"what": "Tensor (8) float32"},
        {"bytes_per_step": 2048.0},
        {"holder": held_by("attribute `Recorded.losses`")},  # a class that is not installed
        {"holder": replace(RECORDED, module="program")},  # the program's of the same name
    ],
)
def test_nothing_else_that_it_keeps_is(recorded, other):
    assert logs_of_libraries([replace(recorded, **other)], 1024) == ()
