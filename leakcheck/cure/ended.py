"""Edits that end what a line opens, or make it once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.cure.reads import ADDS, added_to, last_part, within
from leakcheck.cure.rewriting import beside, body_of, with_import
from leakcheck.cure.sites import LeakSite
from leakcheck.runtime.readings.meters import COUNTED
from leakcheck.static.facts.resources import makers

if TYPE_CHECKING:
    from leakcheck.static.module import LoopNode

# what makes it -> what ends it; `{module}` is what the maker's name begins with
_ENDS = {
    "Pool": "{name}.terminate()",
    "ThreadPoolExecutor": "{name}.shutdown()",
    "ProcessPoolExecutor": "{name}.shutdown()",
    "figure": "{module}.close({name})",
    "subplots": "{module}.close({name})",
    "mkstemp": "os.close({name})",
    "open": "{name}.close()",
    "SharedMemory": "{name}.unlink()",
}
_FIRST_OF_PAIR = ("subplots", "mkstemp")  # each returns it with something else
_TAKE_OVER = ("fdopen",)  # what is given to these is ended with what they make
_OS_OPEN = "os.close({name})"


def closed(site: LeakSite, size: str) -> Iterator[str]:
    """Close what a line opens where its block ends.

    Where threads, descriptors or processes grow, whatever the line makes may have them; else only
    what is known to end by more than its last reference.
    """
    for line in site.lines():
        for part in line.body:
            match part:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=target)], value=cst.Call(func=func)
                ) if site.suspect.kind in COUNTED or _is_ended(site.text(func)):
                    for name in _ended_name(target, site.text(func)):
                        if _is_handed_on(site, name, line):
                            continue
                        end = _end_of(site.text(func), name)
                        text = _closed(site, line, end)
                        yield with_import(text, "os") if end.startswith("os.") else text


def _ended_name(target: cst.BaseAssignTargetExpression, maker: str) -> Iterator[str]:
    """Yield the name of what has to be ended: of a pair from a call, its first."""
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), _]):
            if last_part(maker) in _FIRST_OF_PAIR:
                yield name


def _is_handed_on(site: LeakSite, name: str, line: cst.SimpleStatementLine) -> bool:
    """Say whether somebody else has what a line makes, and may use it behind its block."""
    block = site.source.parents[line]
    for each in site.source.all(cst.Name):
        if each.value != name or not within(site, each, block) or within(site, each, line):
            continue
        match site.source.parents[each]:
            case cst.Return() | cst.Yield() | cst.Assign() | cst.Element() | cst.DictElement():
                return True
            case cst.Arg() as arg:
                call = site.source.parents[arg]
                made = last_part(site.text(call.func)) if isinstance(call, cst.Call) else ""
                if made in (*ADDS, *_TAKE_OVER):
                    return True
    return False


def _is_ended(maker: str) -> bool:
    """Say whether what a call makes has to be ended, as far as the last part of its name tells."""
    made = last_part(maker)
    return made in makers("ends", "owned") or made in _ENDS or gives_handle(made)


def gives_handle(made: str) -> bool:
    """Say whether what is called by this name registers a hook, and returns its handle."""
    return made.startswith("register_") and made.endswith("hook")


def _end_of(maker: str, name: str) -> str:
    module, _, made = maker.rpartition(".")
    if maker == "os.open":
        return _OS_OPEN.format(name=name)
    if gives_handle(made):
        return f"{name}.remove()"
    return _ENDS.get(made, "{name}.close()").format(name=name, module=module)


def _closed(site: LeakSite, line: cst.SimpleStatementLine, end: str) -> str:
    parent = site.source.parents[line]
    body = body_of(parent)
    at = next((number for number, each in enumerate(body) if each is line), len(body))
    rest, ended = body[at + 1 :], site.source.statement(end)
    last = [cst.Try(cst.IndentedBlock(rest), finalbody=cst.Finally(cst.IndentedBlock([ended])))]
    new = [*body[: at + 1], *(last if rest else [ended])]
    return site.source.replaced(parent, parent.with_changes(body=new))


def made_once(site: LeakSite, size: str) -> Iterator[str]:
    """Move a line before its loop, if it reads nothing that the loop sets.

    What is put into a list is of the loop: another one each time.
    """
    added = any(added_to(part, site.source) == site.holder.name for part in site.parts())
    for line in () if added else site.lines():
        loops = site.loops()
        if loops and not _is_of(site, loops[0], line):
            yield from before_loop(site, line)


def before_loop(site: LeakSite, line: cst.SimpleStatementLine) -> Iterator[str]:
    """Move a line of the innermost loop before it, if others are left there."""
    loops = site.loops()
    if not loops or site.source.parents[line] is not loops[0].body:
        return
    body = [each for each in body_of(loops[0].body) if each is not line]
    if body:
        inside = loops[0].with_changes(body=loops[0].body.with_changes(body=body), leading_lines=[])
        before = line.with_changes(leading_lines=loops[0].leading_lines)
        yield beside(site.source, loops[0], [before, inside])


def _is_of(site: LeakSite, loop: LoopNode, line: cst.SimpleStatementLine) -> bool:
    """Say whether a line reads a name that the loop binds elsewhere."""
    bound = {
        each.value
        for each in site.source.all(cst.Name)
        if _is_bound(site, each) and loop in site.source.around(each)
    }
    own = [each for each in site.source.all(cst.Name) if line in site.source.around(each)]
    return any(each.value in bound and not _is_bound(site, each) for each in own)


def _is_bound(site: LeakSite, name: cst.Name) -> bool:
    target: cst.CSTNode = name
    parent = site.source.parents[target]
    if isinstance(parent, cst.Element):
        target = site.source.parents[parent]
        parent = site.source.parents[target]
    return isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr)) or (
        isinstance(parent, (cst.For, cst.CompFor)) and parent.target is target
    )
