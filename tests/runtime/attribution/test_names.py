from __future__ import annotations

import linecache

import pytest

from leakcheck.model import Place
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import is_stacked
from tests.holders import held_by


@pytest.fixture
def place(tmp_path):
    """Return the first line of a source as a place."""

    def place(source: str) -> Place:
        path = tmp_path / "program.py"
        path.write_text(source)
        parsed.cache_clear()
        linecache.checkcache(str(path))
        return Place(str(path), 1, "")

    return place


def test_what_is_made_one_tensor_of_may_not_be_numbers(place):
    source = "self.outs.append(loss)\nmean = torch.stack([x for x in self.outs]).mean()\n"

    assert is_stacked(
        place(source), held_by("attribute `Model.outs`, from local `model` in main()")
    )
    assert not is_stacked(
        place(source), held_by("attribute `Model.others`, from local `model` in main()")
    )
    assert not is_stacked(place("kept.append(loss)\nsum(kept)\n"), held_by("global `kept`"))
