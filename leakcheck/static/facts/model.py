"""The facts of one file: frozen, small, without syntax; everything a query needs to be a few lines.

A place is known by the last word of its name: `self.cache`, `other.cache` and `Cls.cache` count as
one, since a receiver's class is often unknown. That errs on the side of silence.

Structs are made in a third of the time of frozen dataclasses, and a file has thousands of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from sys import intern
from typing import Literal

import msgspec

# bind: given a value     add: one entry more     slot: an entry under a key
# take: an entry less     measure: its length     escape: handed to code that may do anything
# read: looked at
EffectRole = Literal["bind", "add", "slot", "take", "measure", "escape", "read"]
# What becomes of a call's result; "chained": only a method of it is called
Fate = Literal["dropped", "bound", "returned", "yielded", "managed", "argument", "chained", "used"]

MODULE = -1  # the index that stands for a file's own code, outside of all functions

Handled = Literal["", "try", "except", "finally"]


class Span(msgspec.Struct, frozen=True, order=True, gc=False):
    """Where something stands: lines from 1, columns from 0 in UTF-8 bytes, as `ast` counts."""

    line: int
    column: int
    end_line: int
    end_column: int


class Expr(msgspec.Struct, frozen=True, gc=False):
    """An expression in a word: what kind it is, what it spells, which names it reads."""

    kind: Literal["name", "constant", "call", "empty", "lambda", "item", "slice", "other"]
    # the dotted name, the constant's repr, what is called, or whose item it is; ".item" where a
    # method of something computed is called; "bool" of a comparison
    text: str = ""
    names: tuple[str, ...] = ()  # of a lambda, a partial and anything computed
    plain: tuple[str, ...] = ()  # the dotted names that stand as they are in a display

    @property
    def part(self) -> Expr:
        """What each of several names is given that this is unpacked into: an item of a name."""
        return Expr("item", self.text, (self.text,)) if self.kind == "name" else Expr("other")


class Argument(msgspec.Struct, frozen=True, gc=False):
    """One argument of a call; `keyword` is empty for a positional one, "*" or "**" for a spread."""

    keyword: str
    value: Expr


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call: what is called, with what, where, and what becomes of the result."""

    spelled: str  # "self.pool.map"; ".map" where the receiver is no chain of names
    qualified: str  # by the imports, "torch.optim.SGD"; empty when unknown
    receiver: Expr | None  # of a method
    arguments: tuple[Argument, ...]
    fate: Fate
    bound: str  # the dotted name its result is bound to
    function: int  # index of the function it stands in, -1 at module level
    loops: int  # how many loops of that function are around it
    outermost: tuple[int, int]  # the lines of the outermost of them, (0, 0) for none
    managers: tuple[str, ...]  # the context managers around it, in its function
    handled: Handled  # the part of a `try` it stands in
    at: Span
    unpacked: tuple[str, ...] = ()  # the names its result is unpacked into

    @property
    def method(self) -> str:
        """The last word of what is called."""
        return self.spelled.rpartition(".")[2]

    def argument(self, keyword: str, position: int = -1) -> Expr | None:
        """Return the value of an argument by its keyword, else by its position."""
        for given in self.arguments:
            if given.keyword == keyword:
                return given.value
        if 0 <= position < len(self.arguments) and not self.arguments[position].keyword:
            return self.arguments[position].value
        return None

    def given(self, name: str, parameters: Sequence[str]) -> str:
        """Return the parameter that a plain name is given as, "" for none."""
        for place, given in enumerate(self.arguments):
            if given.value.kind == "name" and given.value.text == name:
                if given.keyword:
                    return given.keyword if given.keyword in parameters else ""
                return parameters[place] if place < len(parameters) else ""
        return ""


class AttributeEffect(msgspec.Struct, frozen=True, gc=False):
    """One effect on an attribute: `self.seen[key] = value` is a slot of `seen`, held by self."""

    name: str
    holder: str  # "self", another dotted name, or "" when it is computed
    role: EffectRole
    how: str  # the method called on it, the function it is given to, or ""
    key: Expr | None  # of a slot
    value: Expr | None  # what it is given
    function: int
    loops: int
    guarded: bool  # under an `if`
    at: Span


class Binding(msgspec.Struct, frozen=True, gc=False):
    """A plain name that is given a value."""

    name: str
    value: Expr
    function: int
    at: Span


class FunctionFacts(msgspec.Struct, frozen=True, gc=False):
    """A function or method."""

    name: str
    owner: str  # the class around it, "" for none
    parameters: tuple[str, ...]
    decorators: tuple[str, ...]  # qualified where known, else as spelled
    around: int  # the function it is nested in, -1 for none
    shared: frozenset[str]  # the names it declares global or nonlocal
    reads: frozenset[str]  # the plain names that it and the functions in it read
    returns: tuple[Expr, ...]
    return_places: tuple[Span, ...]
    raises: tuple[tuple[Expr, Span], ...]
    yields: bool
    endless: bool  # it has a `while True` that nothing in it leaves
    at: Span


class ClassFacts(msgspec.Struct, frozen=True, gc=False):
    """A class: its bases, as qualified as the imports tell, and its methods by index."""

    name: str
    bases: tuple[str, ...]
    methods: Mapping[str, int]
    at: Span


@dataclass(frozen=True)
class FileFacts:
    """Everything known of one file."""

    functions: tuple[FunctionFacts, ...] = ()
    classes: tuple[ClassFacts, ...] = ()
    calls: tuple[Call, ...] = ()
    uses: tuple[AttributeEffect, ...] = ()
    local_uses: tuple[AttributeEffect, ...] = ()  # on a plain name's container: adds and takes
    bindings: tuple[Binding, ...] = ()
    imports: Mapping[str, str] = field(default_factory=dict)  # local name -> what it stands for
    strings: frozenset[str] = frozenset()  # short strings, as getattr and setattr may be given
    late_imports: frozenset[str] = frozenset()  # what functions import as they run

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names of the classes and of the functions at the top level."""
        at_top = (each.name for each in self.functions if each.around < 0 and not each.owner)
        return frozenset((*at_top, *(each.name for each in self.classes)))

    @cached_property
    def uses_by_name(self) -> Mapping[str, tuple[AttributeEffect, ...]]:
        """The uses of each attribute, by its last word."""
        found: dict[str, list[AttributeEffect]] = {}
        for use in self.uses:
            found.setdefault(use.name, []).append(use)
        return {name: tuple(uses) for name, uses in found.items()}

    @cached_property
    def calls_by_name(self) -> Mapping[str, tuple[Call, ...]]:
        """The calls by the last word of what is called."""
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            found.setdefault(intern(call.method), []).append(call)
        return {name: tuple(calls) for name, calls in found.items()}

    def calls_in(self, function: int) -> tuple[Call, ...]:
        """Return the calls that stand in a function, not those of functions nested in it."""
        return self._calls_by_function.get(function, ())

    @cached_property
    def _calls_by_function(self) -> Mapping[int, tuple[Call, ...]]:
        found: dict[int, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.function, []).append(call)
        return {index: tuple(calls) for index, calls in found.items()}

    def function(self, index: int) -> FunctionFacts | None:
        """Return the function of an index; None for the module's own code."""
        return self.functions[index] if index >= 0 else None

    def method_around(self, index: int) -> FunctionFacts | None:
        """Return the outermost function around some code: the method that nested ones are in."""
        found = self.function(index)
        while found is not None and found.around >= 0:
            found = self.functions[found.around]
        return found

    def class_around(self, index: int) -> ClassFacts | None:
        """Return the class in whose method some code stands."""
        method = self.method_around(index)
        return self.class_named(method.owner) if method is not None else None

    def class_named(self, name: str) -> ClassFacts | None:
        """Return the file's own class of this name."""
        return next((each for each in self.classes if each.name == name), None)
