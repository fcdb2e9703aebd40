"""Lines while other threads run the user's code too: only this thread's lines are seen.

What another thread adds to a list shows after whatever line this one runs meanwhile. So a line is
believed only if it names the container, and else looked for in the functions that the others run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from types import CodeType

from leakcheck.model import Holder
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.frames import Site
from leakcheck.source.words import words

_ATTRIBUTE = re.compile(r"\.\w+")
_SET = r"\[.*\]\s*=[^=]"  # of a variable: `n += 1` is a number


def checked(
    lines: Counter[Site], holder: Holder, codes: Iterable[CodeType], edges: Iterable[str] = ()
) -> Counter[Site]:
    """Return those of `lines` that name the container, else the line of `codes` that adds to it.

    `edges`: from the root to it; `self.inbox.put(x)` names what holds a queue's container. One that
    nothing refers to may be a variable of theirs: then it is the only line that adds to such a one.
    """
    name = re.escape(holder.named.name)
    if not name:
        return _to_a_variable(codes) if holder.kind == "outside" and holder.function else lines
    around = (re.escape(edge[1:]) for edge in edges if _ATTRIBUTE.fullmatch(edge))
    called = "|".join((name, *around))
    here = {site: n for site, n in lines.items() if _matches(rf"\b({called})\b", site)}
    if here:
        return Counter(here)
    return _only((site, _adds(name, r"\[|\+=")) for code in codes for site in _sites(code))


def _to_a_variable(codes: Iterable[CodeType]) -> Counter[Site]:
    return _only(
        (site, _adds(re.escape(name), _SET))
        for code in codes
        for name in (*code.co_varnames, *code.co_cellvars)
        for site in _sites(code)
    )


def _only(asked: Iterable[tuple[Site, str]]) -> Counter[Site]:
    """Return the only one of these lines that looks as it should, if there is one."""
    found = {site for site, pattern in asked if _matches(pattern, site)}
    return Counter(found) if len(found) == 1 else Counter()


def _adds(name: str, otherwise: str) -> str:
    """Return what the source of a line that adds looks like, by a method or `otherwise`."""
    methods = "|".join(sorted(words("methods", "add")))
    return rf"\b{name}\s*(\.\s*({methods})\(|{otherwise})"


def _sites(code: CodeType) -> set[Site]:
    numbers = {line for _, _, line in code.co_lines() if line}
    return {Site(code.co_filename, line, code.co_name) for line in numbers}


def _matches(pattern: str, site: Site) -> bool:
    return re.search(pattern, frames.source_line(site)) is not None
