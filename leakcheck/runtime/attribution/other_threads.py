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

_ATTRIBUTE = re.compile(r"\.\w+")
_ADDS = r"\b{name}\s*(\.\s*(append|appendleft|add|put|put_nowait|extend|insert|update)\(|\[|\+=)"


def checked(
    lines: Counter[Site], holder: Holder, codes: Iterable[CodeType], edges: Iterable[str] = ()
) -> Counter[Site]:
    """Return those of `lines` that name the container, else the line of `codes` that adds to it.

    `edges`: from the root to it; `self.inbox.put(x)` names what holds a queue's container.
    """
    name = re.escape(holder.named.name)
    if not name:
        return lines
    around = (re.escape(edge[1:]) for edge in edges if _ATTRIBUTE.fullmatch(edge))
    called = "|".join((name, *around))
    here = {site: n for site, n in lines.items() if _matches(rf"\b({called})\b", site)}
    if here:
        return Counter(here)
    there = {
        site for code in codes for site in _sites(code) if _matches(_ADDS.format(name=name), site)
    }
    return Counter(there) if len(there) == 1 else Counter()


def _sites(code: CodeType) -> set[Site]:
    numbers = {line for _, _, line in code.co_lines() if line}
    return {Site(code.co_filename, line, code.co_name) for line in numbers}


def _matches(pattern: str, site: Site) -> bool:
    return re.search(pattern, frames.source_line(site)) is not None
