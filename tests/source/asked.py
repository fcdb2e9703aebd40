"""Ask the reader about a program in a few words."""

from __future__ import annotations

import textwrap

from leakcheck.runtime.outlook import Case, Outlook, outlook_of
from leakcheck.source.places import Held
from leakcheck.source.tree import ProgramTexts
from leakcheck.source.uses import RELIEVES, Use, uses_of

ADDS = "# adds"


def program_of(*texts: str, complete: bool = False) -> ProgramTexts:
    """Return a program of train.py, and of other.py and third.py if there are more texts."""
    names = ("train.py", "other.py", "third.py")
    known = dict(zip(names, map(textwrap.dedent, texts), strict=False))
    return ProgramTexts(known, complete)


def lines_that_add(program: ProgramTexts) -> tuple[tuple[str, int], ...]:
    """Return the lines that end with `# adds`."""
    return tuple(
        (path, number)
        for path, text in program.texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith(ADDS)
    )


def held(program: ProgramTexts, holder: str, **known: object) -> Held:
    """Return what "kept", "kept in train()" or "Meter.kept" stands for.

    A variable is the module's or the function's, an attribute is of objects of the class; other
    kinds are said: "closure: kept in make()".
    """
    adds = lines_that_add(program)
    kind, _, holder = holder.rpartition(": ")
    name, _, function = holder.removesuffix("()").partition(" in ")
    owner, _, attribute = name.rpartition(".")
    if owner:
        classes = program.family(owner)
        return Held("attribute", attribute, classes=classes, adds=adds, **known)  # type: ignore[arg-type]
    kind = kind or ("local" if function else "global")
    return Held(kind, name, function, path="train.py", adds=adds, **known)  # type: ignore[arg-type]


def uses(program: ProgramTexts, holder: str, **known: object) -> tuple[Use, ...]:
    """Return what the program does with what it holds."""
    return uses_of(program, held(program, holder, **known))


def reliefs(program: ProgramTexts, holder: str, **known: object) -> list[tuple[str, str, str, str]]:
    """Return the role, guard, reach and code of the uses that take something away."""
    found = uses(program, holder, **known)
    return [(u.role, u.guard.kind, u.reach, u.code) for u in found if u.role in RELIEVES]


def outlook(program: ProgramTexts, holder: str, **known: object) -> Outlook:
    """Return what is to come, by the source alone."""
    return outlook_of(Case(uses(program, holder, **known)))
