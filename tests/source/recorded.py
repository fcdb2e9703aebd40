"""What five older engines said of each source of their tests, and what is said of it now.

recorded.json has a source a line: its `files`, what `grows` there, how often lines ran (`visits`),
and which of the `engines` saw something that may stop it: `limited` by a length, `emptied` when a
loop turns or `elsewhere`, `perhaps` emptied, `removed` from in a way that tells no limit, a `memo`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakcheck.runtime import outlook
from leakcheck.runtime.outlook import Outlook
from leakcheck.source.places import Held
from leakcheck.source.tree import ProgramTexts
from leakcheck.source.uses import uses_of


@dataclass(frozen=True)
class Case:
    """One source, with the test that it is from, numbered where that has several."""

    test: str
    files: dict[str, str]
    grows: tuple[dict[str, Any], ...]
    engines: frozenset[str]
    visits: tuple[tuple[str, int, int], ...] = ()
    complete: bool = False

    @property
    def outlooks(self) -> tuple[Outlook, ...]:
        """What is to come of each thing that grows there."""
        program = ProgramTexts(self.files, self.complete)
        visits = {(path, line): ran for path, line, ran in self.visits}
        return tuple(_outlook(program, dict(one), visits) for one in self.grows)

    @property
    def may_stop(self) -> bool:
        """Whether the source has something to wait for, for all that grows."""
        return all(outlook.kind != "leak" for outlook in self.outlooks)


def _outlook(
    program: ProgramTexts, told: dict[str, Any], visits: dict[tuple[str, int], int]
) -> Outlook:
    graph, alone = told.pop("graph", False), told.pop("alone", False)
    pairs = ("adds", "owners")
    told |= {each: tuple(map(tuple, told.get(each, ()))) for each in pairs}
    held = Held(**(told | {"classes": tuple(told.get("classes", ()))}))
    return outlook.outlook_of(
        outlook.Case(uses_of(program, held, visits), graph=graph, alone=alone)
    )


def recorded() -> list[Case]:
    """Read the recorded sources."""
    cases = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))
    seen = Counter[str]()
    for case in cases:
        seen[case["test"]] += 1
        case["test"] += f" #{seen[case['test']]}" if seen[case["test"]] > 1 else ""
        case["grows"], case["engines"] = tuple(case["grows"]), frozenset(case["engines"])
        case["visits"] = tuple(map(tuple, case.get("visits", ())))
    return [Case(**case) for case in cases]
