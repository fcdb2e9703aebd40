"""One checker: rules chosen, files checked one after another, fixed, or accepted by comments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from leakcheck.errors import RuleError, SourceError
from leakcheck.model import Finding
from leakcheck.static import engine, syntax
from leakcheck.static.cache import CheckOutcome, rules_digest
from leakcheck.static.files import Source, absolute, decode, display_path, patterns, read_bytes
from leakcheck.static.fix import Fixed, fix_text
from leakcheck.static.notebook import Notebook, in_cells, python_of, read_notebook
from leakcheck.static.registry import builtin_rule_set, load_rules
from leakcheck.static.rule import Rule
from leakcheck.static.select import Layer, asked_for, choose, names_of, slugs_named
from leakcheck.static.suppress import UnusedSuppression, add_ignores, suppress
from leakcheck.static.workspace import Workspace, digest_of


@dataclass(frozen=True, slots=True)
class Settings:
    """What a check is told; patterns for files are as in .gitignore, relative to `root`.

    `doubtful`: findings of low confidence are told whatever was selected.
    """

    root: Path = Path()
    layers: tuple[Layer, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rule_sets: tuple[Path, ...] = ()
    cache_dir: Path | None = None
    jobs: int = 1
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file's new bytes, its text before and after, and the findings that this took care of."""

    raw: bytes
    before: str
    after: str
    settled: tuple[Finding, ...]


def all_rules(rule_sets: tuple[Path, ...] = ()) -> tuple[type[Rule], ...]:
    """Load the built-in rules and those of other rule sets, sorted by code."""
    return (UnusedSuppression, *load_rules((builtin_rule_set(), *rule_sets)))


def open_document(path: Path, raw: bytes | None = None) -> Source | Notebook:
    """Read a Python file or a notebook; SourceError says why it cannot be read."""
    raw = read_bytes(path) if raw is None else raw
    return read_notebook(raw) if path.suffix == ".ipynb" else decode(raw)


class Checker:
    """Checks one file after another with the same rules, and remembers what imports led to."""

    def __init__(self, settings: Settings) -> None:
        """Load the rules; RuleError or UsageError when they are not what the settings say."""
        self._doubtful = settings.doubtful
        self._rule_sets = (builtin_rule_set(), *settings.rule_sets)
        self.rules = all_rules(settings.rule_sets)
        self.slugs = names_of(self.rules)
        self.chosen = choose(self.rules, settings.layers)
        self._asked = asked_for(self.rules, settings.layers)
        self.workspace = Workspace()
        self._root = absolute(settings.root)
        self._cached = settings.cache_dir is not None
        self._ignores = [
            (patterns("per-file-ignores", [pattern]), frozenset(slugs_named(names, self.rules)))
            for pattern, names in settings.per_file_ignores
        ]

    def check(self, path: Path) -> CheckOutcome:
        """Check a file on disk; what is wrong with the file is in the outcome, not raised."""
        shown = display_path(path)
        try:
            document = open_document(path)
            findings = self.check_text(document.text, path)
        except (SourceError, RuleError) as error:
            reason = str(error).removeprefix(f"{shown}: ")
            return CheckOutcome(reason=reason, dependencies=self._dependencies(shown))
        if isinstance(document, Notebook):
            findings = in_cells(document.text, findings)
        return CheckOutcome(findings, dependencies=self._dependencies(shown))

    def _dependencies(self, shown: str) -> dict[str, str | None]:
        """Return what the cache is to know: thousands of paths for a file of a large project."""
        return self.workspace.dependencies(shown) if self._cached else {}

    def check_text(self, text: str, path: Path) -> tuple[Finding, ...]:
        """Check the text of a file (or the joined cells of a notebook), suppressions applied.

        Raises SourceError for text that cannot be parsed, RuleError when a rule crashes on it.
        """
        shown, active = display_path(path), self.active(path)
        python = python_of(text) if path.suffix == ".ipynb" else text
        rules = [r for r in self.rules if r.slug in active and r is not UnusedSuppression]
        findings: tuple[Finding, ...] = ()
        if any(word in python for rule in rules for word in rule.words):
            try:
                found = engine.check_source(python, shown, rules, self.workspace)
                findings = tuple(each for each in found if self._is_told(each))
            finally:
                self.workspace.trim()
        elif syntax.outline(python) is None:
            syntax.parse(python)  # no rule has a say; but a file that is no Python is to be named
        return suppress(shown, python, findings, self.slugs, active)

    def _is_told(self, finding: Finding) -> bool:
        """Whether it is known to matter, or somebody wants to hear of whatever its rule finds."""
        wanted = self._doubtful or finding.rule in self._asked
        return finding.confidence != "low" or wanted

    def fix(self, path: Path, *, unsafe: bool) -> Rewritten | None:
        """Fix what can be fixed, each fix proved; None when nothing can."""
        document = open_document(path)
        fixed = self.fix_text(document.text, path, unsafe=unsafe)
        if not fixed.fixed:
            return None
        return Rewritten(document.encode(fixed.text), document.text, fixed.text, fixed.fixed)

    def fix_text(self, text: str, path: Path, *, unsafe: bool) -> Fixed:
        """Fix the text of a file (or the joined cells of a notebook) as far as it can be."""

        def check(text: str) -> tuple[Finding, ...] | None:
            try:
                return self.check_text(text, path)
            except SourceError:
                return None

        return fix_text(text, check, unsafe=unsafe)

    def accept(self, path: Path, reason: str) -> Rewritten | None:
        """Accept every finding by a comment; None when there is nothing to accept."""
        document = open_document(path)
        findings = self._acceptable(document.text, path)
        if not findings:
            return None
        text = add_ignores(document.text, findings, reason)
        if self._acceptable(text, path):
            raise SourceError("the comments would not accept every finding; nothing was written")
        return Rewritten(document.encode(text), document.text, text, findings)

    def active(self, path: Path) -> frozenset[str]:
        """Return the slugs of the rules that run on a file."""
        relative = os.path.relpath(path, self._root).replace(os.sep, "/")
        ignored = (slugs for spec, slugs in self._ignores if spec.match_file(relative))
        return self.chosen.difference(*ignored)

    def key(self, path: Path, digest: str) -> str:
        """Hash all that a file's outcome follows from, other files apart, given its own digest."""
        parts = [display_path(path), *sorted(self.active(path)), self._digest, digest]
        return digest_of("\0".join(parts).encode("utf-8", "surrogateescape"))

    @cached_property
    def _digest(self) -> str:
        asked = (f"all of {slug}" for slug in (self.chosen if self._doubtful else self._asked))
        return rules_digest({*self.chosen, *asked}, self._rule_sets)

    def _acceptable(self, text: str, path: Path) -> tuple[Finding, ...]:
        findings = self.check_text(text, path)
        return tuple(each for each in findings if each.rule != UnusedSuppression.slug)
