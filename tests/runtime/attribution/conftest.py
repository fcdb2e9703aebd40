from __future__ import annotations

import linecache

import pytest

from leakcheck.model import LeakTrace, Link, Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from tests.holders import held_by


@pytest.fixture
def named(tmp_path):
    """Return what grows under a name at a line of a source."""

    def named(source: str, holder: str = "global `kept`", *edges: str, line: int = 1) -> Suspect:
        path = tmp_path / "program.py"
        path.write_text(source)
        parsed.cache_clear()
        linecache.checkcache(str(path))
        root = holder.rpartition("from ")[2]
        trace = LeakTrace(root, tuple(Link(edge, "") for edge in edges))
        places = (Place(str(path), line, ""),)
        return Suspect("tensor", "tensors", holder=held_by(holder), trace=trace, locations=places)

    return named
