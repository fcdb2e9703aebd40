"""Edits that bound a container to its newest entries; its owner chooses how many."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.cure.reads import makings
from leakcheck.cure.rewriting import beside, body_of, with_body, with_import
from leakcheck.cure.sites import LeakSite

_LENGTHENS = ("cat", "concat", "concatenate", "append", "vstack")
_UNSAID = "..."  # the size, where the owner has not chosen


def windowed(site: LeakSite, size: str) -> Iterator[str]:
    """Delete the oldest entries, and keep a list: a deque has no slices, and cannot be stacked."""
    for line in site.lines():
        lists = [each for part in line.body for each in _lengthened(part)]
        cuts = [site.source.statement(f"del {site.text(each)}[:{_last(size)}]") for each in lists]
        if cuts:
            yield beside(site.source, line, [line, *cuts])


def _lengthened(part: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    match part:
        case cst.Expr(value=value):
            yield from _lengthened(value)
        case cst.Tuple(elements=elements):
            for each in elements:
                yield from _lengthened(each.value)
        case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value="append" | "extend"))):
            yield held


def sliced(site: LeakSite, size: str) -> Iterator[str]:
    """Keep the last rows of a tensor that `cat` makes longer, the end of a string."""
    for part in site.parts():
        match part:
            case cst.Assign(
                targets=[cst.AssignTarget(target=target)], value=cst.Call(func=func, args=args)
            ) if site.text(func).rpartition(".")[2] in _LENGTHENS and args:
                is_first = _first(args[0].value, site) == site.text(target)
                yield site.source.replaced(part.value, _cut(part.value, size, newest_last=is_first))
            case cst.AugAssign(operator=cst.AddAssign()):
                for line in site.lines():
                    name = site.text(part.target)
                    cut = site.source.statement(f"{name} = {name}[{_last(size)}:]")
                    yield beside(site.source, line, [line, cut])


def _first(parts: cst.BaseExpression, site: LeakSite) -> str:
    match parts:
        case cst.List(elements=[first, *_]) | cst.Tuple(elements=[first, *_]):
            return site.text(first.value)
    return site.text(parts)


def _cut(value: cst.BaseExpression, size: str, *, newest_last: bool) -> cst.Subscript:
    cut = cst.parse_expression(f"x[{_last(size)}:]" if newest_last else f"x[:{size}]")
    assert isinstance(cut, cst.Subscript)
    return cut.with_changes(value=value)


def trimmed(site: LeakSite, size: str) -> Iterator[str]:
    """Drop the oldest entry of a dict where it has more than so many."""
    for line in site.lines():
        for part in line.body:
            match part:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=held))]):
                    name = site.text(held)
                    trim = cst.parse_statement(
                        f"if len({name}) > {size}:\n    del {name}[next(iter({name}))]\n",
                        config=site.source.module.config_for_parsing,
                    )
                    assert not isinstance(trim, cst.SimpleStatementLine)
                    yield beside(site.source, line, [line, trim])


def _last(size: str) -> str:
    return size if size == _UNSAID else f"-{size}"


def as_deque(site: LeakSite, size: str) -> Iterator[str]:
    """Make the container that is held a deque of a size."""
    for made in makings(site):
        if made.value is not None and site.text(made.value) in ("[]", "list()"):
            deque = cst.parse_expression(f"collections.deque(maxlen={size})")
            yield with_import(site.source.replaced(made.value, deque), "collections")


def memo_limited(site: LeakSite, size: str) -> Iterator[str]:
    """Give a memo of functools a size."""

    def limited(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.Decorator):
            return None
        text = site.source.module.code_for_node(node.decorator)
        module, _, memo = text.partition("(")[0].rpartition(".")
        if memo not in ("lru_cache", "cache"):
            return None
        prefix = "" if memo == "lru_cache" and not module else f"{module or 'functools'}."
        return node.with_changes(
            decorator=cst.parse_expression(f"{prefix}lru_cache(maxsize={size})")
        )

    for function in site.source.all(cst.FunctionDef):
        if site.suspect.holder.kind == "memo" and function.name.value == (
            site.suspect.holder.function.rpartition(".")[2] or site.suspect.holder.name
        ):
            text = site.source.mapped(limited, function)
            yield with_import(text, "functools") if "@functools.lru_cache(" in text else text


def cleared_each_epoch(site: LeakSite, size: str) -> Iterator[str]:
    """Empty the container at the end of the loop around that of the steps."""
    loops = site.loops()
    for part in site.parts():
        match part:
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=container))) if len(loops) > 1:
                new = site.source.statement(f"{site.text(container)}.clear()")
                if isinstance(loops[1].body, cst.IndentedBlock):
                    yield with_body(site.source, loops[1], [*body_of(loops[1].body), new])
