"""Is a value a piece of text: so short, beside tensors, that a table of them is no leak to mend?"""

from __future__ import annotations

from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import AttributeEffect, Expr, FileFacts

# methods of strings, which give strings
_OF_STRINGS = frozenset(
    ("join", "lower", "upper", "strip", "lstrip", "rstrip", "decode", "format", "hexdigest")
)
# attributes that by their name are text, of whatever
_TEXTS = Pattern(r"(^|_)(<texts>)$")


def is_text(facts: FileFacts, use: AttributeEffect) -> bool:
    """Tell whether what is kept is text, by what made it where it was bound last."""
    value = use.value
    if value is not None and value.kind == "name" and "." not in value.text:
        bound = [
            each
            for each in facts.bindings
            if each.name == value.text and each.function == use.function and each.at < use.at
        ]
        return bool(bound) and _makes_text(max(bound, key=lambda each: each.at).value)
    return value is not None and _makes_text(value)


def _makes_text(value: Expr) -> bool:
    _, dot, method = value.text.rpartition(".")
    if value.kind == "name" and dot:
        return _TEXTS.search(method) is not None
    return value.kind == "call" and (method in _OF_STRINGS if dot else method == "str")
