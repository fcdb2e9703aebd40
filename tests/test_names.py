"""A name means one thing: no two classes or type aliases of the package are called the same."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import leakcheck

PACKAGE = Path(leakcheck.__file__).parent

# each framework asks for a callback of its own kind, and its users import it under one name
_ONE_EACH = {"LeakcheckCallback"}
# the reader of the source speaks of syntax, the rest of the package of what it stands for
_OF_SYNTAX = {"Call", "Loop", "Place", "Reach", "Tables", "Visits"}
# of the run-time half, where two neighbours have one each: to be told apart
_OF_A_RUN = {"Course", "Found", "LoopWatch", "Outcome", "_Key"}


def names_in(tree: ast.Module) -> Iterator[str]:
    """Yield the classes of a file, and the aliases of types at its top: `Loop = For | While`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp()):
                if name.lstrip("_")[:1].isupper() and not name.isupper():
                    yield name


def test_the_names_of_a_file_are_its_classes_and_its_aliases_of_types():
    source = """
Loop = ast.For | ast.While
Kind = Literal["a", "b"]
LIMIT = 2 * 1024
half = LIMIT / 2
class Reader:
    class Page: ...
"""

    assert sorted(names_in(ast.parse(source))) == ["Kind", "Loop", "Page", "Reader"]


def test_no_two_classes_have_one_name():
    homes: dict[str, set[Path]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in names_in(ast.parse(path.read_text(encoding="utf-8"))):
            homes[name].add(path.relative_to(PACKAGE))

    twice = {name: sorted(map(str, paths)) for name, paths in homes.items() if len(paths) > 1}

    assert {name: twice[name] for name in twice.keys() - _ONE_EACH - _OF_SYNTAX - _OF_A_RUN} == {}
