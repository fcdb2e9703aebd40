"""Where a model is in evaluation mode: behind `model.eval()`, up to the next `train()`.

Only a stretch of statements of one block counts, and only one in which nothing has to do with
gradients: a training loop that evaluates at the end of each epoch has one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakcheck.static.facts import passes
from leakcheck.static.facts.nodes import dotted
from leakcheck.static.syntax import outline, outline_nodes, outline_walk

if TYPE_CHECKING:
    from leakcheck.static.facts.model import Call

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp)


@dataclass(frozen=True)
class Stretch:
    """The statements of a block in which models are evaluated, by their lines."""

    models: frozenset[str]  # as spelled: "self.model"
    first: int
    last: int
    closed: bool  # something is put back in training mode behind them
    loops: tuple[tuple[int, int], ...]

    def holds(self, call: Call) -> bool:
        """Tell whether a call stands in it."""
        return self.first <= call.at.line and call.at.end_line <= self.last

    def repeats(self, call: Call) -> bool:
        """Tell whether a call stands in a loop of it."""
        return any(first <= call.at.line <= last for first, last in self.loops)

    def is_own(self, call: Call) -> bool:
        """Tell whether a call is that of a model that was put in evaluation mode."""
        return call.spelled.removesuffix(".forward").removesuffix(".module") in self.models


def stretches(source: str) -> list[Stretch]:
    """Return the stretches of a source in which nothing has to do with gradients."""
    switches = ".eval()" in source or ".train(False)" in source
    tree = outline(source) if switches else None
    found: list[Stretch] = []
    for node in outline_nodes(tree) if tree is not None else ():
        for block in (getattr(node, part, None) for part in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                found += _stretches_of(block)
    return found


def _stretches_of(block: Sequence[ast.stmt]) -> Iterator[Stretch]:
    models: set[str] = set()
    inside: list[ast.stmt] = []
    for statement in block:
        model = _evaluated(statement)
        ends = bool(models) and model is None and _trains(statement)
        if ends and (found := _stretch(models, inside, closed=True)) is not None:
            yield found
        if ends:
            models, inside = set(), []
        elif model is not None:
            models.add(model)
        elif models:
            inside.append(statement)
    if (found := _stretch(models, inside, closed=False)) is not None:
        yield found


def _stretch(models: set[str], inside: Sequence[ast.stmt], *, closed: bool) -> Stretch | None:
    if not inside or any(_concerns_gradients(each) for each in inside):
        return None
    nodes = (node for each in inside for node in outline_walk(each) if isinstance(node, _LOOPS))
    loops = tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes)
    last = inside[-1].end_lineno or inside[-1].lineno
    return Stretch(frozenset(models), inside[0].lineno, last, closed, loops)


def _evaluated(statement: ast.stmt) -> str | None:
    """Return the model that a statement puts in evaluation mode, or makes so."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=model)) as call):
            return dotted(model) or None if _switches(call) == "eval" else None
        case ast.Assign(targets=[model], value=ast.Call(func=ast.Attribute(value=made)) as call):
            same = dotted(made) in ("", dotted(model))  # `model = build().eval()`
            return dotted(model) or None if same and _switches(call) == "eval" else None
    return None


def _switches(call: ast.Call) -> str:
    """Return the mode that a call switches a module to, "" for none."""
    match call:
        case ast.Call(func=ast.Attribute(attr="eval"), args=[], keywords=[]):
            return "eval"
        case ast.Call(func=ast.Attribute(attr="train"), args=[ast.Constant(value=False)]):
            return "eval"
        case ast.Call(func=ast.Attribute(attr="train")):
            return "train"
    return ""


def _trains(statement: ast.stmt) -> bool:
    """Whether something is put in training mode, or trained."""
    calls = (node for node in outline_walk(statement) if isinstance(node, ast.Call))
    return any(_switches(call) == "train" for call in calls)


def _concerns_gradients(statement: ast.stmt) -> bool:
    """Whether code differentiates, or switches gradients on or off."""
    for node in outline_walk(statement):
        word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if "grad" in word.lower() or passes.is_switch(word) or passes.differentiates(word):
            return True
    return False
