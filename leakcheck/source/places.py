"""What does the program call the place that holds what grows, and in which scope?

A place is a name in a scope: a variable of one function or module, or an attribute of objects of
some classes. Another function's variable of that name, and another class's attribute, is another
place.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from leakcheck.source.owners import Makers, kinds_of
from leakcheck.source.tree import COMPREHENSIONS, FUNCTIONS, File, ProgramTexts


@dataclass(frozen=True, slots=True)
class Held:
    """What is asked about: a name, bound to the live object that has it.

    A `closure` is a variable of a `function` that outlives its call, as is a parameter's `default`.
    `classes`: the names of the owner's class and its bases, if it is an attribute; `homes`: the
    files that define these, () where that is not known; `path`: the file of a variable.
    `adds`: the lines that are seen to add, `inner`: to one of its elements.
    `owners`: the objects between a root and it, `("trainer", "main")` for a local and its function,
    "" for a global's, and `(".memory", "Trainer")` for an attribute and the class that has it.
    `keyed`: it is known to be a dictionary, in which to set what is not there yet adds.
    `names`: of text, under which the way from the root to it leads through dictionaries.
    """

    kind: Literal["local", "global", "attribute", "closure", "default", "unknown"]
    name: str = ""
    function: str = ""
    classes: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    path: str = ""
    adds: tuple[tuple[str, int], ...] = ()
    inner: bool = False
    owners: tuple[tuple[str, str], ...] = ()
    keyed: bool = False
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """A variable of a scope, or an attribute of the objects of some classes."""

    kind: Literal["variable", "attribute"]
    name: str
    path: str = ""  # of the file; "" for an attribute, which any file may name
    line: int = 0  # of the variable's function or comprehension, 0 for the module
    classes: tuple[str, ...] = ()  # whose attribute it is, where these are known
    homes: tuple[str, ...] = ()  # the files that define these classes
    inner: bool = False  # an element of it is what grows
    owner: bool = False  # it is an object that has the place
    alias: bool = False  # a name that was given it: to set that anew takes nothing away
    makers: Makers = None  # the calls that make its object, where these are known


def place_at(program: ProgramTexts, file: File, node: ast.AST) -> list[Place]:
    """Return the place that an expression stands for, none if it is not a plain name."""
    match node:
        case ast.Name():
            scope = file.scope(node)
            line = scope.lineno if isinstance(scope, (*FUNCTIONS, *COMPREHENSIONS)) else 0
            return [Place("variable", node.id, file.path, line)]
        case ast.Attribute(value=owner, attr=name):
            kinds = kinds_of(program, file, owner)
            known = tuple(dict.fromkeys(n for k in sorted(kinds or ()) for n in program.family(k)))
            return [Place("attribute", name, classes=known)]
    return []
