"""What a walk takes note of: places that grow, backward passes, arguments that are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import libcst as cst

from leakcheck.static.flow.values import Ids, Value

if TYPE_CHECKING:
    from leakcheck.static.flow.classes import ClassInfo
    from leakcheck.static.flow.definitions import Definition

How = Literal["sum", "collect", "carry"]
GraphLeakKind = Literal[
    "accumulator", "collection", "meter", "epoch-long", "in-place", "statistics", "carried",
    "evaluation", "step-output",
]  # fmt: skip
Env = dict[str, Value]


@dataclass(frozen=True, slots=True)
class GrowingPlace:
    """A place whose contents grow: at every turn of the loops, or with every call of the method."""

    how: How
    node: cst.CSTNode
    target: str
    value: Value  # what the place holds afterwards
    added: Value  # what is put in
    loops: Ids
    per_call: bool = False
    expression: cst.BaseExpression | None = None  # the source of `added`, for a fix
    keyed: bool = False  # a slot chosen by a key, which may come round again
    filled: str = ""  # the parameter that is the container: it grows for the caller
    slots: bool = False  # of a list, which a store under an index makes no longer


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass: what it frees, and inside which loops."""

    node: cst.Call
    value: Value
    loops: Ids


@dataclass(frozen=True, slots=True)
class Feed:
    """A graph-carrying argument handed to an object that piles up what it is given."""

    call: cst.CSTNode
    argument: Value
    owner: ClassInfo
    growth: GrowingPlace
    loops: Ids
    method: str = ""
    guessed: bool = False  # the class follows from the method's name alone


@dataclass(frozen=True, slots=True)
class Fill:
    """A graph-carrying argument handed to a function that puts it into a name around it."""

    call: cst.CSTNode
    argument: Value
    definition: Definition
    growth: GrowingPlace
    loops: Ids


@dataclass(frozen=True, slots=True)
class Summed:
    """A parameter that a function adds to in place: `old.lerp_(new, weight)`."""

    parameter: str
    added: Value


@dataclass(slots=True)
class Frame:
    """One loop being walked."""

    node: cst.CSTNode
    continues: list[Env] = field(default_factory=list)
    breaks: list[Env] = field(default_factory=list)
    anew: frozenset[str] = frozenset()  # places that a turn leaves with a leaf: no past goes round
