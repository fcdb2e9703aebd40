"""Edits that keep less: nothing, a place, a text, a copy of a part, a weak reference, the last.

What is kept may go, or leave its place empty, only where the file never reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.cure.blocks import beside, body_of
from leakcheck.cure.imported import with_import
from leakcheck.cure.sites import LeakSite

ADDS = ("append", "appendleft", "add", "insert", "put", "put_nowait", "setdefault", "update")
_EMPTY = ("[]", "list()", "set()")
_PARTS = ("view", "narrow", "select", "reshape", "split", "chunk", "unbind", "squeeze")


def dropped(site: LeakSite, size: str) -> Iterator[str]:
    """Do not keep it: nothing reads what holds it."""
    for line in site.lines():
        if len(line.body) == 1 and _mentions(site, line) and not any(_reads(site)):
            left = [each for each in body_of(site.source.parents[line]) if each is not line]
            yield beside(site.source, line, [] if left else [site.source.statement("pass")])


def emptied(site: LeakSite, size: str) -> Iterator[str]:
    """Keep its place and not the value: nothing reads more of what holds it than its length."""
    reads = [*_reads(site)]
    if any(not _is_length(site, each) for each in reads):
        return
    for value in _values(site):
        yield site.source.replaced(value, cst.Name("None"))


def as_text(site: LeakSite, size: str) -> Iterator[str]:
    """Keep the words of an exception: it holds the frames that it came through."""
    for value in _values(site):
        handlers = (
            each for each in site.source.around(value) if isinstance(each, cst.ExceptHandler)
        )
        caught = next((each.name for each in handlers if each.name is not None), None)
        if caught is not None and site.text(caught.name) == site.text(value):
            yield site.source.replaced(value, cst.Call(cst.Name("str"), [cst.Arg(value)]))


def copied(site: LeakSite, size: str) -> Iterator[str]:
    """Keep a copy of the part: a view keeps the whole."""
    for value in _values(site):
        match value:
            case cst.Subscript():
                yield site.source.replaced(value, cst.Call(cst.Attribute(value, cst.Name("clone"))))
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _PARTS:
                yield site.source.replaced(value, cst.Call(cst.Attribute(value, cst.Name("clone"))))


def weakly(site: LeakSite, size: str) -> Iterator[str]:
    """Keep weak references: who uses an object keeps it."""
    weakref = site.source.name_of("weakref") or "weakref"
    name, added = site.holder.name, [site.text(each) for each in _values(site)]

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value):
                if _last(site.text(target)) == name and site.text(value) in _EMPTY:
                    return node.with_changes(value=cst.parse_expression(f"{weakref}.WeakSet()"))
            case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value="append"))):
                if _last(site.text(held)) == name:
                    return node.with_deep_changes(node.func, attr=cst.Name("add"))
        return None

    if name and added == ["self"]:
        yield with_import(site.source.mapped(change, site.source.module), weakref)
    for part in site.parts():
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute())], value=cst.Name()):
                proxy = cst.parse_expression(f"{weakref}.proxy({site.text(part.value)})")
                yield with_import(site.source.replaced(part.value, proxy), weakref)


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


def _values(site: LeakSite) -> Iterator[cst.BaseExpression]:
    """Yield what the line keeps as a whole: the last argument of `append`, what is assigned."""
    for part in site.parts():
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())], value=value):
                yield value
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args)):
                if name in ADDS and args:
                    yield args[-1].value


def _mentions(site: LeakSite, line: cst.SimpleStatementLine) -> bool:
    return any(_within(site, each, line) for each in _names(site))


def _names(site: LeakSite) -> list[cst.Name]:
    name = site.holder.name
    return [each for each in site.source.all(cst.Name) if name and each.value == name]


def _reads(site: LeakSite) -> Iterator[cst.Name]:
    """Yield where the holder's name is, but on the site's line and where it is made."""
    lines = site.lines()
    for each in _names(site):
        if not any(_within(site, each, line) for line in lines) and not _is_made(site, each):
            yield each


def _is_made(site: LeakSite, name: cst.Name) -> bool:
    for outer in site.source.around(name):
        if isinstance(outer, cst.Attribute) and outer.attr is name:
            continue
        if isinstance(outer, (cst.AssignTarget, cst.NameItem)):
            return True
        return isinstance(outer, cst.AnnAssign) and name.value == _last(site.text(outer.target))
    return False


def _is_length(site: LeakSite, name: cst.Name) -> bool:
    for outer in site.source.around(name):
        match outer:
            case cst.Attribute(attr=attr) if attr is name:
                continue
            case cst.Arg():
                call = site.source.parents[outer]
                return isinstance(call, cst.Call) and site.text(call.func) == "len"
        return False
    return False


def _within(site: LeakSite, node: cst.CSTNode, line: cst.CSTNode) -> bool:
    return any(each is line for each in site.source.around(node))


def _last(text: str) -> str:
    return text.rpartition(".")[2]
