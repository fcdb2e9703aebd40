"""Where a file names what holds a leak, and where it reads it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.cure.sites import LeakSite, SourceTree
from leakcheck.model import Holder

ADDS = ("append", "appendleft", "add", "insert", "put", "put_nowait", "setdefault", "update")


def names(site: LeakSite) -> list[cst.Name]:
    """Return every mention of the holder's name."""
    name = site.holder.name
    return [each for each in site.source.all(cst.Name) if name and each.value == name]


def reads(site: LeakSite) -> Iterator[cst.Name]:
    """Yield the mentions of the holder's name, except on the site's line and where it is made."""
    lines = site.lines()
    for each in names(site):
        if not any(within(site, each, line) for line in lines) and not _is_made(site, each):
            yield each


def added_at(source: SourceTree, holder: Holder) -> list[int]:
    """Return the lines that put something into what has the holder's name, or make it longer."""
    if not holder.name:
        return []
    parts = source.small_statements()
    return [source.start(part)[0] for part in parts if added_to(part, source) == holder.name]


def added_to(part: cst.BaseSmallStatement, source: SourceTree) -> str:
    """Return the name of what a statement adds to or makes longer, "" if it does not."""
    match part:
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value=name)))):
            return _last(held) if name in ADDS else ""
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=held))]):
            return _last(held)
        case cst.AugAssign(target=held):
            return _last(held)
        case cst.Assign(targets=[cst.AssignTarget(target=held)], value=value):
            code = source.module.code_for_node
            return _last(held) if code(held) in code(value) else ""
    return ""


def _last(held: cst.BaseExpression) -> str:
    return _last(held.value) if isinstance(held, cst.Subscript) else last_word(held)


def last_word(value: cst.BaseExpression) -> str:
    """Return the last word of a dotted name, "" of anything else."""
    match value:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""


def is_length(site: LeakSite, name: cst.Name) -> bool:
    """Whether no more than the length of a holder is read there."""
    for outer in site.source.around(name):
        match outer:
            case cst.Attribute(attr=attr) if attr is name:
                continue
            case cst.Attribute(attr=cst.Name(value="qsize")):
                return True
            case cst.Arg():
                call = site.source.parents[outer]
                return isinstance(call, cst.Call) and site.text(call.func) == "len"
        return False
    return False


def within(site: LeakSite, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
    """Whether a node is a part of another."""
    return any(each is outer for each in site.source.around(node))


def _is_made(site: LeakSite, name: cst.Name) -> bool:
    for outer in site.source.around(name):
        if isinstance(outer, cst.Attribute) and outer.attr is name:
            continue
        if isinstance(outer, (cst.AssignTarget, cst.NameItem)):
            return True
        return isinstance(outer, cst.AnnAssign) and name.value == _last(outer.target)
    return False


def targets(site: LeakSite) -> list[str]:
    """Return the names and attributes that the line assigns to."""
    found: list[str] = []
    for part in site.parts():
        if isinstance(part, cst.AugAssign):
            found.append(site.text(part.target))
        elif isinstance(part, cst.Assign):
            for target in part.targets:
                found.extend(bound_names(target.target, site.source))
    return found


def bound_names(target: cst.BaseExpression, source: SourceTree) -> Iterator[str]:
    """Yield the names that a target binds: several of a tuple."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for each in target.elements:
            yield from bound_names(each.value, source)
    elif isinstance(target, (cst.Name, cst.Attribute)):
        yield source.text(target)


def binds(assign: cst.Assign, name: str, site: LeakSite) -> bool:
    """Say whether an assignment binds a name."""
    return any(name in bound_names(each.target, site.source) for each in assign.targets)


def last_part(text: str) -> str:
    """Return the last of the words of a dotted name."""
    return text.rpartition(".")[2]


def makings(site: LeakSite) -> Iterator[cst.Assign | cst.AnnAssign]:
    """Yield the assignments that make the container which holds the leak."""
    name = site.holder.name
    for made in site.source.small_statements():
        if isinstance(made, cst.Assign) and len(made.targets) == 1:
            target = site.text(made.targets[0].target)
        elif isinstance(made, cst.AnnAssign):
            target = site.text(made.target)
        else:
            continue
        if name and last_part(target) == name:
            assert isinstance(made, (cst.Assign, cst.AnnAssign))
            yield made
