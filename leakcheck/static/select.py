"""Which rules run: names, codes and code prefixes from settings and command line, to slugs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from leakcheck.errors import UsageError
from leakcheck.static.rule import Rule

ALL = "ALL"


@dataclass(frozen=True, slots=True)
class Layer:
    """One word on which rules run; `select` starts afresh, so a later layer overrules earlier."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def names_of(rules: Iterable[type[Rule]]) -> dict[str, str]:
    """Lead from every name a rule can be called by (its slug, its code) to its slug."""
    return {name: rule.slug for rule in rules for name in (rule.slug, rule.code)}


def choose(rules: Collection[type[Rule]], layers: Sequence[Layer]) -> frozenset[str]:
    """Return the slugs of the rules that run.

    Raises UsageError for a name that is no rule, with the nearest that is one.
    """
    return _follow(layers, rules, {rule.slug for rule in rules if rule.default})


def asked_for(rules: Collection[type[Rule]], layers: Sequence[Layer]) -> frozenset[str]:
    """Return the slugs of the rules that somebody chose: these tell what may not matter as well."""
    return _follow(layers, rules, set())


def _follow(
    layers: Sequence[Layer], rules: Collection[type[Rule]], chosen: set[str]
) -> frozenset[str]:
    for layer in layers:
        if layer.select is not None:
            chosen = set(slugs_named(layer.select, rules))
        chosen |= set(slugs_named(layer.extend_select, rules))
        chosen -= set(slugs_named(layer.ignore, rules))
    return frozenset(chosen)


def slugs_named(names: Iterable[str], rules: Collection[type[Rule]]) -> Iterator[str]:
    """Yield the slugs that slugs, codes, code prefixes ("LK1") or "ALL" stand for."""
    for name in names:
        matched = [rule.slug for rule in rules if _stands_for(name, rule)]
        if not matched:
            raise UsageError(_unknown(name, rules))
        yield from matched


def _stands_for(name: str, rule: type[Rule]) -> bool:
    if name in (ALL, rule.slug):
        return True
    return len(name) > 1 and name.isupper() and rule.code.startswith(name)


def _unknown(name: str, rules: Iterable[type[Rule]]) -> str:
    words = {word.lower(): word for rule in rules for word in (rule.slug, rule.code)}
    near = get_close_matches(name.lower(), words, 1)
    hint = f'did you mean "{words[near[0]]}"?' if near else "`leakcheck rules` lists them all"
    return f'no rule is called "{name}"; {hint}'
