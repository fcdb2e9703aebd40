"""What does this name refer to? An import table, read once, asked lazily.

LibCST's QualifiedNameProvider answers more and costs 785-1,075 us a line; this costs a dictionary
look-up for each name a rule asks about.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import libcst as cst

from leakcheck.static.syntax import dotted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def table(name: str) -> dict[str, object]:
    """Read one of the data files that lie beside this module."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


class Names:
    """The names a module imports, and what they stand for."""

    def __init__(self, imports: Iterable[cst.Import | cst.ImportFrom], own: Iterable[str]) -> None:
        """Read the import statements; `own` are the module's functions and classes."""
        self.imported: dict[str, str] = {}
        for statement in imports:
            match statement:
                case cst.Import():
                    self._read_import(statement)
                case cst.ImportFrom():
                    self._read_import_from(statement)
        for name in own:
            self.imported.pop(name, None)

    def qualified(self, node: cst.BaseExpression) -> str:
        """Spell what a chain of names refers to, "torch.optim.SGD"; empty when not imported.

        A relative import keeps its dots: ".meters.AverageMeter".
        """
        spelled = dotted(node)
        if not spelled:
            return ""
        head, dot, tail = spelled.partition(".")
        base = self.imported.get(head)
        if base is None:
            return ""
        return canonical(f"{base}{dot}{tail}")

    def _read_import(self, statement: cst.Import) -> None:
        for alias in statement.names:
            name = dotted(alias.name)
            if alias.asname and isinstance(alias.asname.name, cst.Name):
                self.imported[alias.asname.name.value] = name
            else:
                head = name.partition(".")[0]
                self.imported[head] = head

    def _read_import_from(self, statement: cst.ImportFrom) -> None:
        module = "." * len(statement.relative)
        module += dotted(statement.module) if statement.module else ""
        if isinstance(statement.names, cst.ImportStar):
            return
        for alias in statement.names:
            name = dotted(alias.name)
            local = alias.asname.name if alias.asname else alias.name
            joint = "" if module.endswith(".") else "."
            if isinstance(local, cst.Name):
                self.imported[local.value] = f"{module}{joint}{name}"


@cache
def canonical(name: str) -> str:
    """Spell a name as the tables do: "torch.autograd.no_grad" is "torch.no_grad"."""
    for alias, canonical in _aliases():
        if name == alias or name.startswith(f"{alias}."):
            return f"{canonical}{name[len(alias) :]}"
    return name


@cache
def _aliases() -> tuple[tuple[str, str], ...]:
    aliases = table("torch_api")["aliases"]
    assert isinstance(aliases, dict)
    return tuple(aliases.items())
