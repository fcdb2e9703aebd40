"""Rule folders in, rule classes out: the built-in rule set and users' are loaded alike."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import leakcheck
from leakcheck.errors import RuleError
from leakcheck.source.words import add_from
from leakcheck.static.rule import Rule

CODE = re.compile(r"[A-Z]{2,4}[0-9]{3,4}")
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def builtin_rule_set() -> Path:
    """Return the folder of the built-in rules: inside the package, else beside it in a checkout."""
    package = Path(leakcheck.__file__).resolve().parent
    beside = package.parent / "rules"
    installed = package / "rules"
    return installed if installed.is_dir() else beside


@cache
def builtin_rules() -> tuple[type[Rule], ...]:
    """Load the built-in rules once, sorted by code."""
    return load_rules([builtin_rule_set()])


def default_rules() -> tuple[type[Rule], ...]:
    """Return the built-in rules that run unless told otherwise."""
    return tuple(rule for rule in builtin_rules() if rule.default)


def load_rules(rule_sets: Iterable[Path]) -> tuple[type[Rule], ...]:
    """Load every rule folder of the rule sets, sorted by code, and the words of their verbs.toml.

    Raises RuleError for a folder that cannot be loaded, or a code or slug that is taken twice.
    """
    rules: list[type[Rule]] = []
    for rule_set in rule_sets:
        add_from(rule_set)
        rules += [load_rule(folder) for folder in rule_folders(rule_set)]
    for name in ("code", "slug"):
        _require_unique(rules, name)
    return tuple(sorted(rules, key=lambda rule: rule.code))


def rule_folders(rule_set: Path) -> list[Path]:
    """List the folders of a rule set that hold a rule.py; RuleError when it is no folder."""
    if not rule_set.is_dir():
        raise RuleError(f'rule set "{rule_set}" is not a folder')
    return sorted(path.parent for path in rule_set.glob("*/rule.py"))


def load_rule(folder: Path) -> type[Rule]:
    """Load the one Rule class of a folder; RuleError says what is wrong with it."""
    file = folder / "rule.py"
    if not SLUG.fullmatch(folder.name):
        raise RuleError(f'{folder}: "{folder.name}" is no slug; use lower-case-words')
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    # of ours, so that a watch that comes after does not take it for a part of the program
    name = f"leakcheck.rules.{folder.name.replace('-', '_')}_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise RuleError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a rule set's author wrote, the user gets one line
        raise RuleError(f"{file}: {type(error).__name__}: {error}") from error
    return _only_rule(file, vars(module).values(), name)


def _only_rule(file: Path, values: Iterable[object], module: str) -> type[Rule]:
    own = [
        value
        for value in values
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module
    ]
    rules = [rule for rule in own if "code" in vars(rule)]
    if len(rules) != 1:
        raise RuleError(f"{file}: expected one Rule class with a code, found {len(rules)}")
    rule = rules[0]
    if not isinstance(rule.code, str) or not CODE.fullmatch(rule.code):
        raise RuleError(f'{file}: code {rule.code!r} must look like "LK101"')
    if not isinstance(getattr(rule, "summary", None), str):
        raise RuleError(f"{file}: {rule.__name__} has no summary")
    rule.slug = file.parent.name
    return rule


def _require_unique(rules: list[type[Rule]], attribute: str) -> None:
    seen: dict[str, type[Rule]] = {}
    for rule in rules:
        value = getattr(rule, attribute)
        if value in seen:
            raise RuleError(f'two rules have the {attribute} "{value}"')
        seen[value] = rule
