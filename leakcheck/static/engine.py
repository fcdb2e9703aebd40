"""Source text in, findings out: parse once, run the rules, place their hits.

The contract for callers (files, cache, workers, suppressions and output are built on this):

* `check_source(source, path, rules=..., project=...)` is a pure function of its arguments. `path`
  is only copied into the findings. `rules` are classes from the registry; by default those that run
  unless told otherwise. `project` (see project.py) lets analyses look into imported modules.
* Findings come sorted by place, then code; each place appears once a rule. Lines and columns count
  from 1, columns in characters; `context` is the text of the finding's first line.
* SourceError, one line without the path: the file cannot be parsed. RuleError: a rule crashed.
* Suppressions and baselines are not applied here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from leakcheck.errors import LeakcheckError, RuleError, SourceError
from leakcheck.model import Finding
from leakcheck.static import registry, relevance, syntax
from leakcheck.static.facts.link import is_run_by_tests
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

if TYPE_CHECKING:
    from leakcheck.static.project import Project


def check_source(
    source: str,
    path: str = "<source>",
    rules: Sequence[type[Rule]] | None = None,
    project: Project | None = None,
) -> tuple[Finding, ...]:
    """Find the leaks of one file's text; SourceError when it cannot be parsed."""
    chosen = registry.default_rules() if rules is None else rules
    concerned = concerned_rules(source, chosen, path, project)
    if not concerned:
        return ()
    known = project.take(path, source) if project is not None else None
    module = known or Module(source, path=path, project=project)
    try:
        findings = {_key(f): f for rule in concerned for f in _findings(rule, module)}
    except RecursionError:
        raise SourceError("nested too deeply to be checked") from None
    finally:
        if project is not None and module is known:
            project.put_back(module)
        else:
            module.release()
    return tuple(sorted(findings.values(), key=lambda f: (f.location, f.code)))


def concerned_rules(
    source: str,
    rules: Iterable[type[Rule]],
    path: str = "<source>",
    project: Project | None = None,
) -> list[type[Rule]]:
    """Pass over the rules that cannot find anything in the text, before LibCST parses it.

    Raises SourceError for text that is no Python, if any rule's words are in it.
    """
    has = cache(source.__contains__)  # many rules share their words
    worded = [rule for rule in rules if any(map(has, rule.words))]
    if not worded:
        return []
    outline = syntax.outline(source)
    if outline is None:
        return worded
    if not relevance.torch_matters(source, path, project):
        worded = [rule for rule in worded if not rule.needs_torch]
    if not worded:
        return []
    if syntax.depth(outline) > syntax.DEEPEST_NESTING:
        raise SourceError("nested too deeply to be checked")
    return [rule for rule in worded if rule().concerns(outline)]


def _findings(rule: type[Rule], module: Module) -> Iterator[Finding]:
    try:
        for hit in rule().check(module):
            yield _finding(rule, hit, module)
    except (LeakcheckError, RecursionError):
        raise
    except Exception as error:
        where = f"{module.path}: " if module.path else ""
        raise RuleError(
            f"{where}rule {rule.slug} failed: {type(error).__name__}: {error}"
        ) from error


def _finding(rule: type[Rule], hit: Hit, module: Module) -> Finding:
    location = module.location(hit.node)
    brief = is_run_by_tests(module.path, module.source, module.facts.facts)
    return Finding(
        rule=rule.slug,
        code=rule.code,
        location=location,
        message=hit.message,
        help=hit.help,
        severity=hit.severity,
        confidence="low" if brief else hit.confidence,
        fix=hit.fix,
        context=module.line(location.line),
        evidence=hit.evidence,
    )


def _key(finding: Finding) -> tuple[object, ...]:
    return (finding.location, finding.code)
