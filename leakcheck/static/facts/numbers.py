"""Is a value a plain number, or a few of them: too light to be worth a line?"""

from __future__ import annotations

from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import Expr, FileFacts

DEEPEST_NAME = 3
_COUNTS = Pattern(r"(^|\.)(<gives_numbers>)$")
_OF_NUMBERS = ("max", "min", "abs", "sum")  # Python's own
_NAMED = Pattern(r"(^|_)(<numbers>)$")


def is_number(facts: FileFacts, value: Expr | None, function: int, depth: int = 0) -> bool:
    """Tell whether a value is a number, or a tuple of them, by what made it, else by its name."""
    if value is None or value.kind == "constant":
        return True
    if value.kind == "call":
        return value.text in _OF_NUMBERS or _COUNTS.search(value.text) is not None
    if value.kind == "item":
        return value.text.endswith(".shape")
    if value.kind == "other" and value.text:
        return value.text == "bool"
    if value.kind == "other":
        shown = {name.partition(".")[0] for name in value.plain}
        members = (Expr("name", name) for name in value.plain)
        only = bool(shown) and shown.issuperset(value.names)
        return only and all(is_number(facts, each, function, depth) for each in members)
    if value.kind != "name":
        return False
    made = [b.value for b in facts.bindings if b.name == value.text and b.function == function]
    if made and depth < DEEPEST_NAME and all(each.kind != "other" for each in made):
        return all(is_number(facts, each, function, depth + 1) for each in made)
    return names_number(value.text.rpartition(".")[2])


def names_number(word: str) -> bool:
    """Tell whether a name is one of a number: `epoch_loss`, `learning_rate`."""
    return _NAMED.search(word) is not None
