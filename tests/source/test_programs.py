"""The reader on whole programs that leak: none of them empties or limits what it leaks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from leakcheck.runtime.outlook import Case, outlook_of
from leakcheck.source.places import Held
from leakcheck.source.tree import ProgramTexts
from leakcheck.source.uses import uses_of

PROGRAMS = Path(__file__).parents[1] / "runtime" / "programs" / "leaking"
# a line that may take it away is there, and its time never comes, or is over as the loop runs
NEVER_COMES = {"losses_never_let_go", "extended_in_one_of_two"}
FILLED_AGAIN = {"values_copied_anew"}  # each step: only its length shows that nothing is gone
# only its length shows that nothing holds it, or that the loop goes on which counts
FULL_BY_THE_SOURCE = {"pool_beyond_its_size", "counted_by_its_loop"}
_HOLDER = re.compile(r'^# holder = "(.*)"$', re.MULTILINE)
_KIND = re.compile(r"^(local|global|(?:class )?attribute) `([\w.]+)`")
_ROOT = re.compile(r"(?:local|global) `(\w+)`(?: in (\w+)\(\))?$")
_ENTRY = re.compile(r'\["(\w+)"\]\.')
_LEAKS = re.compile(r"# leak\b")
_OF_GRAPHS = re.compile(r'^# kind = "graph"$', re.MULTILINE)


def asked(path: Path) -> tuple[ProgramTexts, Held] | None:
    """Return a program and what its header says that holds the leak; None if that has no name."""
    text = path.read_text(encoding="utf-8")
    told = _HOLDER.search(text)
    named = _KIND.match(told[1]) if told else None
    if told is None or named is None:
        return None
    program = ProgramTexts({path.name: text}, complete=True)
    numbered = enumerate(text.splitlines(), 1)
    adds = tuple((path.name, number) for number, line in numbered if _LEAKS.search(line))
    owner, _, name = named[2].rpartition(".")
    root = _ROOT.search(told[1])
    if "attribute" in named[1]:
        owners = ((root[1], root[2] or ""),) if root else ()
        classes = program.family(owner)
        held = Held("attribute", name, classes=classes, adds=adds, owners=owners)
        # as the live objects would say
        keyed = re.search(rf"\.{name} = {{}}", text) is not None
        leaks = (line for line in text.splitlines() if _LEAKS.search(line))
        names = frozenset(_ENTRY.findall(next(leaks, "")))
        return program, replace(held, keyed=keyed, names=names, inner=bool(names))
    function = root[2] or "" if root else ""
    kind = "local" if function else "global"
    return program, Held(kind, name, function, path=path.name, adds=adds)


NAMED = {path.stem: found for path in sorted(PROGRAMS.glob("*.py")) if (found := asked(path))}


@pytest.mark.parametrize("program", NAMED)
def test_nothing_in_a_leaking_program_is_hope(program):
    text = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8")
    graph = _OF_GRAPHS.search(text) is not None
    found = outlook_of(Case(uses_of(*NAMED[program]), graph=graph))

    hoped = "emptied" if program in NEVER_COMES | FILLED_AGAIN else ""
    hoped = "fills" if program in FULL_BY_THE_SOURCE else hoped
    assert found.kind in ("leak", "memo", hoped), found


def test_most_programs_have_a_holder_with_a_name():
    assert len(NAMED) >= 40
