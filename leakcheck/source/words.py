"""The words of verbs.toml as sets to ask: does this name say that something is taken away?"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from leakcheck.errors import RuleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "verbs.toml"
Tables = dict[str, dict[str, frozenset[str]]]
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


@cache
def _tables() -> Tables:
    return _read(Path(__file__).parent / FILE)


class Pattern:
    """A regular expression over an identifier, in which `<makes>` is any word of that list.

    Lists are those of [identifiers], or `<names.constructors>` of another table.
    """

    def __init__(self, shape: str) -> None:
        self._shape = shape

    def match(self, name: str) -> re.Match[str] | None:
        """Look for it where the name begins."""
        return _compiled(self._shape).match(name)

    def search(self, name: str) -> re.Match[str] | None:
        """Look for it anywhere in the name."""
        return _compiled(self._shape).search(name)


@cache
def _compiled(shape: str) -> re.Pattern[str]:
    """Put in the words, when they are first asked for: rule sets may have added some."""
    return re.compile(_LIST.sub(_alternatives, shape))


def _alternatives(found: re.Match[str]) -> str:
    table, _, key = found[1].rpartition(".")
    return "|".join(sorted(map(re.escape, words(table or "identifiers", key)), key=len)[::-1])


_LIST = re.compile(r"<([a-z_]+(?:\.[a-z_]+)?)>")


def words(table: str, key: str) -> frozenset[str]:
    """Return a list of verbs.toml, with what rule sets added, as a set."""
    return _tables()[table][key]


def says(name: str, key: str) -> bool:
    """Say whether one of the words that an identifier is made of is in a list of [said]."""
    return not words("said", key).isdisjoint(parts_of(name))


def ends_in(name: str, key: str) -> bool:
    """Say whether the last word that an identifier is made of is in a list of [said]."""
    parts = _PARTS.findall(name)
    return bool(parts) and parts[-1].lower() in words("said", key)


@cache
def parts_of(name: str) -> frozenset[str]:
    """Return the words of an identifier: drop, oldest of `drop_oldest` and of `DropOldest`."""
    return frozenset(part.lower() for part in _PARTS.findall(name))


def add_from(rule_set: Path) -> None:
    """Add the words of a rule set's verbs.toml, if it has one.

    Raises RuleError for a table or list that there is not.
    """
    file = rule_set / FILE
    if file.is_file():
        _merge(_tables(), _read(file), file)


def _merge(known: Tables, more: Tables, file: Path) -> None:
    for table, lists in more.items():
        for key, added in lists.items():
            if key not in known.get(table, {}):
                raise RuleError(f"{file}: there is no list `{key}` in [{table}]")
            known[table][key] |= added
    _compiled.cache_clear()


def _read(file: Path) -> Tables:
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RuleError(f"{file}: cannot be read: {error}") from None
    return {table: _sets(table, lists, file) for table, lists in raw.items()}


def _sets(table: str, lists: object, file: Path) -> dict[str, frozenset[str]]:
    if not isinstance(lists, Mapping):
        raise RuleError(f"{file}: `{table}` is no table")
    for key, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise RuleError(f"{file}: `{key}` in [{table}] is no list of words")
    return {key: frozenset(value) for key, value in lists.items()}
