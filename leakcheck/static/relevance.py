"""Can tensors turn up in a file at all? Asked of its text, before anything is parsed.

Most rules look for words that any program may have ("except", "eval"); a file that names neither
torch nor a library built on it, and imports no file that does, is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from leakcheck.static.torch_api import framework

if TYPE_CHECKING:
    from leakcheck.static.project import Project

_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w.]+)", re.MULTILINE)
_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)", re.MULTILINE
)


def torch_matters(source: str, path: str, project: Project | None = None) -> bool:
    """Whether the text, or a file of the project that it imports, names torch or its kin."""
    if _others().search(source):
        return "torch" in source
    if _names_torch(source):
        return True
    if project is None:
        return False
    return any(_names_torch(project.text(name, path)) for name in _imports(source))


def _names_torch(source: str) -> bool:
    return bool(source) and _kin().search(source) is not None


@cache
def _others() -> re.Pattern[str]:
    aliases = "|".join(sorted(framework("other_tensors", "aliases")))
    modules = "|".join(sorted(framework("other_tensors", "modules")))
    used = rf"\b(?:{aliases})\.[a-z]"
    return re.compile(rf"{used}|^[ \t]*(?:import|from)[ \t]+(?:{modules})\b", re.MULTILINE)


@cache
def _kin() -> re.Pattern[str]:
    names = "|".join(sorted(framework("torch_based", "names") - {"torch"}))
    telling = r"\.backward\(|\.forward\b|requires_grad|no_grad|register_\w*hook"
    return re.compile(rf"torch|{telling}|\b(?:{names})\b")


def _imports(source: str) -> Iterator[str]:
    for found in _IMPORT.finditer(source):
        yield found[1]
    for found in _FROM.finditer(source):
        package, names = found[1], re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", found[2])
        yield package
        yield from (f"{package}{'' if package.endswith('.') else '.'}{name}" for name in names)
