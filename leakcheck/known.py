"""Which leaks of a run are known: published ones of libraries, by their line or what holds them.

They are data, known_leaks.toml; a suspect in, the known leak that fits it out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from itertools import zip_longest
from pathlib import Path

from leakcheck.errors import ConfigError
from leakcheck.model import KnownLeak, Report, Suspect

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "known_leaks.toml"
_WORDS = ("package", "affected", "cure", "source")
_PATTERNS = ("path", "code", "holder")
_CONDITION = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*([\w.+!]+)\s*")
_BEFORE_RELEASE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1}
_COMPARED: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
}


@dataclass(frozen=True, slots=True)
class LeakPattern:
    """A known leak and the patterns of the suspect that it is; a missing one fits all."""

    leak: KnownLeak
    path: str = ""
    code: str = ""
    holder: str = ""


_OWN: list[LeakPattern] = []  # of the project


def recognized(report: Report, entries: Sequence[LeakPattern] | None = None) -> Report:
    """Mark the suspects that are known leaks of the versions that are installed."""
    leaks = (leak_of(suspect, entries) for suspect in report.suspects)
    suspects = (replace(one, known=leak) for one, leak in zip(report.suspects, leaks, strict=True))
    return replace(report, suspects=tuple(suspects))


def leak_of(suspect: Suspect, entries: Sequence[LeakPattern] | None = None) -> KnownLeak | None:
    """Return the known leak of an installed version that a suspect is, None if it is none."""
    for entry in (*_OWN, *shipped()) if entries is None else entries:
        if _fits(entry, suspect):
            version = installed(entry.leak.package)
            if version and affects(entry.leak.affected, version):
                return replace(entry.leak, installed=version)
    return None


def _fits(entry: LeakPattern, suspect: Suspect) -> bool:
    places = [(place.path.replace("\\", "/"), place.code) for place in suspect.locations]
    on_line = any(re.search(entry.path, p) and re.search(entry.code, c) for p, c in places)
    at_line = on_line or not (entry.path or entry.code)
    return at_line and re.search(entry.holder, str(suspect.holder)) is not None


def installed(package: str) -> str:
    """Return the version of a distribution, "" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def affects(conditions: str, version: str) -> bool:
    """Say whether a version fits conditions such as ">=1.1.0,<1.4.0"; "" is every version."""
    found = [_CONDITION.fullmatch(each) for each in conditions.split(",") if each.strip()]
    return all(each is not None and _COMPARED[each[1]](_order(version, each[2])) for each in found)


def _order(one: str, other: str) -> int:
    """Return whether a version is older than another (-1), the same (0) or newer (1)."""
    for left, right in zip_longest(_parts(one), _parts(other), fillvalue=0):
        if left != right:
            return -1 if left < right else 1
    return 0


def _parts(version: str) -> list[int]:
    """Return a version as numbers that compare as releases do: 1.0rc1 < 1.0 < 1.0.post1."""
    public = version.partition("+")[0].lower()
    release = re.match(r"v?([\d.]*\d)(.*)", public)
    if release is None:
        return []
    numbers = [int(part) for part in release[1].split(".") if part]
    numbers += [0] * (6 - len(numbers))
    tail = re.match(r"[._-]?([a-z]+)[._-]?(\d*)", release[2])
    if tail is None:
        return numbers
    return [*numbers, _BEFORE_RELEASE.get(tail[1], 1), int(tail[2] or 0)]


def use(files: Iterable[Path]) -> None:
    """Know the leaks in these files too, and before those that are shipped."""
    _OWN[:] = [entry for file in files for entry in read(file)]


@cache
def shipped() -> tuple[LeakPattern, ...]:
    """Return the known leaks that come with leakcheck."""
    return read(Path(__file__).parent / FILE)


def read(file: Path) -> tuple[LeakPattern, ...]:
    """Read known leaks from a file; raises ConfigError where one cannot be used."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("leak", [])
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {(error.strerror or '').lower()}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from None
    return tuple(_entry(table, f"{file}: leak {n}") for n, table in enumerate(tables, 1))


def _entry(table: dict[str, object], where: str) -> LeakPattern:
    match = table.get("match")
    if set(table) != {*_WORDS, "match"} or not isinstance(match, dict) or not match:
        raise ConfigError(f"{where}: needs {', '.join(_WORDS)} and match, and nothing else")
    wrong = [f'no pattern "{name}" in match' for name in match if name not in _PATTERNS]
    wrong += [f"{name} is no text" for name in _WORDS if not isinstance(table[name], str)]
    conditions = [each for each in str(table["affected"]).split(",") if each.strip()]
    wrong += [f'"{each}" is no condition' for each in conditions if not _CONDITION.fullmatch(each)]
    wrong += [f'"{each}" is no pattern' for each in match.values() if not _is_pattern(each)]
    if wrong:
        raise ConfigError(f"{where}: {wrong[0]}")
    return LeakPattern(KnownLeak(*(str(table[name]) for name in _WORDS)), **match)


def _is_pattern(text: object) -> bool:
    try:
        re.compile(str(text))
    except re.error:
        return False
    return isinstance(text, str)
