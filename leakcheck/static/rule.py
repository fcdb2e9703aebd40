"""What a rule is: one class in `rules/<slug>/rule.py` that looks at a module and yields hits.

What asks who adds, keeps, clears or closes asks `module.facts`, as `rules/written-never-read` does:
that needs no LibCST tree. What asks how a call is written uses the tree:

    class PerStepTimer(Rule):
        code = "LK699"
        summary = "a timer is started at every step and none is stopped"
        words = ("start_timer",)

        def check(self, module: Module) -> Iterator[Hit]:
            for call in module.calls_of("somelib.start_timer"):
                if module.loop_of(call):
                    yield self.hit(call, "a timer starts at every step", help="stop it")

The folder's name is the rule's slug. Built-in rules have no privileges: a user's rule set is loaded
by the same function and sees the same Module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from leakcheck.model import Confidence, Evidence, Fix, Severity

if TYPE_CHECKING:
    import ast

    import libcst as cst

    from leakcheck.static.facts.model import Span
    from leakcheck.static.module import Module


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found, and where; the engine turns it into a Finding with a place."""

    node: cst.CSTNode | Span
    message: str
    help: str
    severity: Severity
    confidence: Confidence
    fix: Fix | None
    evidence: tuple[Evidence, ...] = ()


class Rule(ABC):
    """The base of every rule; `slug` is set from the folder's name when the rule is loaded."""

    slug: ClassVar[str]
    code: ClassVar[str]
    summary: ClassVar[str]
    help: ClassVar[str] = ""
    default: ClassVar[bool] = True  # False: advisory, runs only when selected
    severity: ClassVar[Severity] = "warning"
    proof: ClassVar[str] = ""  # "static only: <why>" when a run of leaky.py can't show growth
    words: ClassVar[tuple[str, ...]] = (
        "torch",
    )  # one must be in the text, else the rule is skipped

    needs_torch: ClassVar[bool] = False  # True: `words` are everyday ones; see relevance.py

    def concerns(self, outline: ast.Module) -> bool:
        """Answer whether the file can matter, from its cheap outline."""
        return True

    @abstractmethod
    def check(self, module: Module) -> Iterator[Hit]:
        """Yield a hit for each place of the module that leaks."""

    def hit(
        self,
        node: cst.CSTNode | Span,
        message: str,
        *,
        help: str | None = None,
        severity: Severity | None = None,
        confidence: Confidence = "high",
        fix: Fix | None = None,
        evidence: tuple[Evidence, ...] = (),
    ) -> Hit:
        """Make a hit at a place; help and severity default to the rule's own."""
        text = self.help if help is None else help
        return Hit(node, message, text, severity or self.severity, confidence, fix, evidence)
