"""Edits that keep less: nothing, a place, a text, a copy of a part, a weak reference.

What is kept may go, or leave its place empty, only where the file never reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from leakcheck.cure.reads import ADDS, is_length, last_part, makings, names, reads, within
from leakcheck.cure.rewriting import beside, body_of, with_import
from leakcheck.cure.sites import LeakSite
from leakcheck.static.torch_api import words

_EMPTY = ("[]", "list()", "set()")
_EMPTY_TABLES = ("{}", "dict()")
_FILES = ("io.BytesIO", "BytesIO", "io.StringIO", "StringIO")
_PURE = frozenset({"len", "float", "int", "str", "bool", "list", "dict", "tuple", "set", "sum"})
_MAKE = frozenset({*ADDS, *words("methods", "cut"), *words("methods", "reshape")})
_PARTS = ("view", "narrow", "select", "reshape", "split", "chunk", "unbind", "squeeze")


def dropped(site: LeakSite, size: str) -> Iterator[str]:
    """Do not keep it: nothing reads what holds it. What makes it is called as before."""
    values = [*_values(site)]
    made = [site.text(each) for each in values if _acts(site, each)]
    for line in site.lines():
        mentioned = any(within(site, each, line) for each in names(site))
        if _acts(site, line, but=values):
            continue
        if len(line.body) == 1 and mentioned and not any(reads(site)):
            left = [each for each in body_of(site.source.parents[line]) if each is not line]
            stay = made or ([] if left else ["pass"])
            yield beside(site.source, line, [site.source.statement(each) for each in stay])


def emptied(site: LeakSite, size: str) -> Iterator[str]:
    """Put None in its place, where nothing reads more of the container than its length."""
    if any(not is_length(site, each) for each in reads(site)):
        return
    for value in _values(site):
        if not _acts(site, value):
            yield site.source.replaced(value, cst.Name("None"))
            continue
        for line in site.lines():
            emptied_line = line.deep_replace(value, cst.Name("None"))
            called = site.source.statement(site.text(value))
            assert isinstance(emptied_line, cst.SimpleStatementLine)
            yield beside(site.source, line, [called, emptied_line.with_changes(leading_lines=[])])


def _acts(site: LeakSite, node: cst.CSTNode, but: Sequence[cst.CSTNode] = ()) -> bool:
    """Say whether a call in a part of the source may do more than make a value.

    What is known to do nothing else: functions of torch, methods of a tensor, a few builtins, and
    what adds to the holder. `but`: parts in it that are not asked about.
    """
    torch = site.source.name_of("torch") or "torch"
    for call in site.source.all(cst.Call):
        around = (call, *site.source.around(call))
        if not any(each is node for each in around) or any(
            each is one for each in around for one in but
        ):
            continue
        function = site.text(call.func)
        plain = function.startswith(f"{torch}.") or function in _PURE
        if not plain and not (
            isinstance(call.func, cst.Attribute) and last_part(function) in _MAKE
        ):
            return True
    return False


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


def on_host(site: LeakSite, size: str) -> Iterator[str]:
    """Keep a copy in the host's memory, without a graph, which would keep the device's."""
    for value in _values(site):
        match value:
            case cst.Name() | cst.Attribute() | cst.Subscript() | cst.Call():
                detached = cst.Call(cst.Attribute(value, cst.Name("detach")))
                moved = cst.Call(cst.Attribute(detached, cst.Name("cpu")))
                yield site.source.replaced(value, moved)


def weakly(site: LeakSite, size: str) -> Iterator[str]:
    """Keep weak references: an object in use is kept by whoever uses it."""
    weakref = site.source.name_of("weakref") or "weakref"
    name, added = site.holder.name, [site.text(each) for each in _values(site)]

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value):
                if last_part(site.text(target)) == name and site.text(value) in _EMPTY:
                    return node.with_changes(value=cst.parse_expression(f"{weakref}.WeakSet()"))
            case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value="append"))):
                if last_part(site.text(held)) == name:
                    return node.with_deep_changes(node.func, attr=cst.Name("add"))
        return None

    if name and added in (["self"], ["cls"]):
        yield with_import(site.source.mapped(change, site.source.module), weakref)
    for part in site.parts():
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute())], value=cst.Name()):
                proxy = cst.parse_expression(f"{weakref}.proxy({site.text(part.value)})")
                yield with_import(site.source.replaced(part.value, proxy), weakref)


def keyed_weakly(site: LeakSite, size: str) -> Iterator[str]:
    """Let an entry go with its key: a dictionary keeps its keys as well as its values."""
    weakref = site.source.name_of("weakref") or "weakref"
    for made in makings(site) if _is_keyed_by_an_object(site) else ():
        if made.value is not None and site.text(made.value) in _EMPTY_TABLES:
            weak = cst.parse_expression(f"{weakref}.WeakKeyDictionary()")
            yield with_import(site.source.replaced(made.value, weak), weakref)


def _is_keyed_by_an_object(site: LeakSite) -> bool:
    """Say whether the line's keys may be objects that go: no text, number, tuple or call."""
    for part in site.parts():
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(slice=[one]))]):
                return isinstance(one.slice, cst.Index) and isinstance(
                    one.slice.value, (cst.Name, cst.Attribute)
                )
    return False


def unlinked(site: LeakSite, size: str) -> Iterator[str]:
    """Keep the newest of a chain: it is made with the one before it, and keeps that."""
    for part in site.parts():
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=cst.Call(args=args)):
                for arg in args:
                    if site.text(arg.value) == site.text(target):
                        yield site.source.replaced(arg.value, cst.Name("None"))


def rewound(site: LeakSite, size: str) -> Iterator[str]:
    """Write a file in memory from its beginning: nothing takes out what was written before."""
    made = (f"{site.holder.name} = {maker}()" for maker in _FILES)
    if not any(each in site.source.module.code for each in made):
        return
    for line in site.lines():
        name = next((site.text(each) for each in names(site) if within(site, each, line)), "")
        if name:
            again = [site.source.statement(f"{name}.{act}") for act in ("seek(0)", "truncate()")]
            yield beside(site.source, line, [*again, line])


def coalesced(site: LeakSite, size: str) -> Iterator[str]:
    """Add up the entries of one place: a sum of sparse tensors keeps those of each."""
    if "sparse" not in site.source.module.code:
        return
    for part in site.parts():
        match part:
            case cst.Assign(value=cst.BinaryOperation() as value):
                inner = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                called = cst.Call(cst.Attribute(inner, cst.Name("coalesce")))
                yield site.source.replaced(value, called)


def _values(site: LeakSite) -> Iterator[cst.BaseExpression]:
    """Yield what the line keeps as a whole: the last argument of `append`, what is assigned."""
    for part in site.parts():
        match part:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())], value=value):
                yield value
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args)):
                if name in ADDS and args:
                    yield args[-1].value
