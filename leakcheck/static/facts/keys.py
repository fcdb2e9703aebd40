"""Does a key stand for one of arbitrarily many things, or for one of a few?

By its name, or by what every caller in the project gives for it.
"""

from __future__ import annotations

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import Call, Expr, FileFacts, FunctionFacts
from leakcheck.static.facts.targets import is_of_python, top_functions

# words for one request, object or input among arbitrarily many
_MANY = Pattern(r"(^|_)(<unique>|(<many>)(_?id|_idx|_index|_key)?)$")


def words_of(key: Expr) -> list[str]:
    """Return the last words of the names that a key is made of, without those of constants."""
    spelled = (key.text, *key.names) if key.kind in ("name", "other") else ()
    words = [each.rpartition(".")[2].lstrip("_") for each in spelled]
    return [word for word in words if not word.isupper()]


def parts_of_key(facts: FileFacts, key: Expr, function: int) -> list[Expr]:
    """Return what a key is put together from: it is as varied as they are, whatever its name.

    `key = (rate, order)` and `key = f"{height}_{width}"` are of a few, `key = (request.id, 1)` not.
    Of what a method of the object makes, `key = self.key_of(step)`, it is not known.
    """
    made = [b.value for b in facts.bindings if (b.name, b.function) == (key.text, function)]
    if key.kind != "name" or not made:
        return [key]
    if all(each.kind == "call" and each.text.startswith("self.") for each in made):
        return []
    return made if all(each.kind == "name" or each.names for each in made) else [key]


def one_of_many(key: Expr) -> bool:
    """Tell whether a key names one of arbitrarily many."""
    return any(_MANY.search(word) for word in words_of(key))


def only_constants(file: Linked, function: int, key: Expr) -> bool:
    """Tell whether a key is made of parameters that all callers give constants, and of settings.

    `key = (cutoff, self.rate)` in `def smooth(self, audio, cutoff)`, always called with 1000.0.
    """
    own = file.facts.function(function)
    if own is None:
        return False
    made = [b.value for b in file.facts.bindings if (b.name, b.function) == (key.text, function)]
    parts = {
        part.partition(".")[0] for value in made or [key] for part in (value.text, *value.names)
    }
    asked = parts - {"", "self"}
    calls = [each for each in file.calls_of(own.name) if not is_of_python(each[1])]
    known = bool(asked and calls) and asked.issubset(own.parameters)
    return known and all(_gives_constants(*each, own, asked) for each in calls)


def _gives_constants(
    facts: FileFacts, call: Call, function: FunctionFacts, asked: set[str]
) -> bool:
    """Whether a call gives a constant for each parameter asked for, or leaves its default."""
    listed = [each for each in function.parameters if each not in ("self", "cls")]
    given = (call.argument(name, listed.index(name)) for name in asked)
    spread = any(each.keyword.startswith("*") for each in call.arguments)
    return not spread and all(
        value is None or _is_constant(facts, value, call.function) for value in given
    )


def _is_constant(facts: FileFacts, value: Expr, function: int) -> bool:
    """Whether a value is a literal, or a function that a file defines: there are a few of them."""
    named = [b.value for b in facts.bindings if (b.name, b.function) == (value.text, function)]
    return all(each.kind == "constant" or _is_defined(facts, each) for each in named or [value])


def _is_defined(facts: FileFacts, value: Expr) -> bool:
    return value.kind == "name" and bool(top_functions(facts, value.text))
