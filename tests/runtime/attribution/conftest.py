from __future__ import annotations

import linecache

import pytest

from leakcheck.model import LeakTrace, Link, Place, Suspect
from leakcheck.runtime.attribution.assignments import tree_of
from leakcheck.runtime.attribution.guards import limited_by_program
from tests.holders import held_by


@pytest.fixture
def named(tmp_path):
    """Return what grows under a name at a line of a source."""

    def named(source: str, holder: str = "global `kept`", *edges: str, line: int = 1) -> Suspect:
        path = tmp_path / "program.py"
        path.write_text(source)
        tree_of.cache_clear()
        linecache.checkcache(str(path))
        root = holder.rpartition("from ")[2]
        trace = LeakTrace(root, tuple(Link(edge, "") for edge in edges))
        places = (Place(str(path), line, ""),)
        return Suspect("tensor", "tensors", holder=held_by(holder), trace=trace, locations=places)

    return named


@pytest.fixture
def said(named, tmp_path):
    """Say what limits are found in a source in which global `kept` grows at line 1."""

    def said(source: str, holder: str = "global `kept`", *edges: str, line: int = 1) -> str:
        found = limited_by_program((named(source, holder, *edges, line=line),))
        return found.replace(f"{tmp_path / 'program.py'}", "program.py")

    return said
