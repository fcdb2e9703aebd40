from __future__ import annotations

import linecache

import pytest

from leakcheck.model import LeakTrace, Link, Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.guards import limited_by_program


@pytest.fixture
def said(tmp_path):
    """Say what is found of a source in which global `kept` grows at line 1."""

    def said(source: str, holder: str = "global `kept`", *edges: str, line: int = 1) -> str:
        path = tmp_path / "program.py"
        path.write_text(source)
        parsed.cache_clear()
        linecache.checkcache(str(path))
        root = holder.rpartition("from ")[2]
        trace = LeakTrace(root, tuple(Link(edge, "") for edge in edges))
        places = (Place(str(path), line, ""),)
        suspect = Suspect("tensor", "tensors", holder=holder, trace=trace, locations=places)
        return limited_by_program((suspect,)).replace(f"{path}", "program.py")

    return said
