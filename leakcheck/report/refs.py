"""Who holds the worst leaks, as a graph in Graphviz's DOT, drawn by objgraph.

objgraph draws living objects, and to label them it calls methods of theirs. What is drawn here are
stand-ins, made of a report's retention paths: the objects themselves may be gone, and their code
is not run. References that two leaks share are drawn once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO

from leakcheck.model import Report, Suspect
from leakcheck.report.plain import one_line
from leakcheck.report.terminal import growth_text, what_text
from leakcheck.units import format_bytes

MOST_SUSPECTS = 5
DEEPEST = 100  # references
_OWN_LABEL = re.compile(r'label="_Thing\\n\d+ items", ')  # before ours
_OF_KEY = re.compile(r' \[label="_Edge\\n')
_ID = re.compile(r"\bo\d+\b")


class _Edge(str):
    """One reference, as it is written; two that read alike are two."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return str.__str__(self)


class _Thing(dict[_Edge, "_Thing"]):
    """What stands for an object, with what it refers to by its references."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.leaks = False

    def to(self, edge: str, label: str) -> _Thing:
        """Return what a reference leads to, made when it is asked for first."""
        for known, thing in self.items():
            if str.__eq__(known, edge) and thing.label == label:
                return thing
        thing = self[_Edge(edge)] = _Thing(label)
        return thing


def render(report: Report, *, color: bool = False) -> str:
    """Write the graph; of a run without a leak an empty one."""
    import objgraph

    roots: dict[str, _Thing] = {}
    for suspect in report.suspects[:MOST_SUSPECTS]:
        _grow(roots, suspect)
    drawn = StringIO()
    objgraph.show_refs(
        list(roots.values()),
        max_depth=DEEPEST,
        too_many=DEEPEST,
        filter=lambda thing: type(thing) is _Thing,
        highlight=lambda thing: thing.leaks,
        extra_node_attrs=lambda thing: {"label": thing.label},
        output=drawn,
    )
    text = _OF_KEY.sub(' [label="', _OWN_LABEL.sub("", drawn.getvalue()))
    return _numbered(text).rstrip()


def _grow(roots: dict[str, _Thing], suspect: Suspect) -> None:
    """Add the references that lead to one leak."""
    trace = suspect.trace
    told = one_line(trace.root if trace else str(suspect.holder) or "held by nothing known")
    thing = roots.setdefault(told, _Thing(told))
    for link in trace.links if trace else ():
        size = f"\n{format_bytes(link.retained_bytes)} in all" if link.retained_bytes else ""
        thing = thing.to(one_line(link.edge).lstrip("."), one_line(link.holder) + size)
    lines = dict.fromkeys((*thing.label.split("\n"), *_told_of(suspect)))
    thing.label, thing.leaks = "\n".join(lines), True


def _told_of(suspect: Suspect) -> Iterator[str]:
    yield one_line(what_text(suspect))
    if grows := growth_text(suspect):
        yield f"grows {grows}"
    for place in suspect.locations[:1]:
        yield one_line(f"{place.path}:{place.line}")


def _numbered(text: str) -> str:
    """Number the nodes in their order: their names are addresses, which differ from run to run."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)  # every second one is quoted
    found = [name for part in parts[::2] for name in _ID.findall(part)]
    numbers = {name: f"o{number}" for number, name in enumerate(dict.fromkeys(found), 1)}
    parts[::2] = [_ID.sub(lambda name: numbers[name[0]], part) for part in parts[::2]]
    return "".join(parts)
