"""The one table of edits that may end a leak: each row makes the texts that are worth a trial.

A row proposes and never promises: what an edit does, only a run of the program shows. Where the
owner alone can choose (a size), a row has a choice to make, and is tried when it has been made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import libcst as cst

from leakcheck.cure.ended import before_loop, closed, made_once
from leakcheck.cure.limited import sliced, trimmed, windowed
from leakcheck.cure.reads import ADDS, within
from leakcheck.cure.rewriting import beside, body_of, with_body, with_import
from leakcheck.cure.sites import LeakSite
from leakcheck.cure.unkept import (
    as_text,
    coalesced,
    copied,
    dropped,
    emptied,
    rewound,
    unlinked,
    weakly,
)
from leakcheck.model import Kind
from leakcheck.source.words import words
from leakcheck.static.cuts import GRAPH_ARGUMENTS, TITLES, takes_method

_SIMPLE = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
_KEPT = (*_SIMPLE, cst.BinaryOperation, cst.UnaryOperation)
_GRAPH: tuple[Kind, ...] = ("graph",)
_MEMORY: tuple[Kind, ...] = ("tensor", "object", "device", "native")
_ANY: tuple[Kind, ...] = (*_GRAPH, *_MEMORY)
_OPENED: tuple[Kind, ...] = (*_MEMORY, "threads", "descriptors", "processes", "shared-memory")
Make = Callable[[LeakSite, str], Iterator[str]]
Lost = Literal["", "graph", "value"]  # what a later statement may miss


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kind of edit: its name, what it does, the leaks it may end, and how it is made."""

    name: str
    title: str
    kinds: tuple[Kind, ...]
    make: Make
    choice: str = ""  # what the owner has to choose, e.g. a size
    loses: Lost = ""
    to_end: bool = False  # what is kept for later is seen only where the program comes to its end


def proposals(site: LeakSite, size: int | None = None) -> Iterator[tuple[int, Candidate, str]]:
    """Yield the edited texts worth a trial at a site, each with its rank, in the table's order.

    `size` is the owner's choice; without one, it is written as `...` in what needs it. Where it
    was made, the edits that ask for it come first.
    """
    chosen = "..." if size is None else str(size)
    before = site.source.module.code
    rows = TABLE if size is None else sorted(TABLE, key=lambda each: not each.choice)
    for rank, candidate in enumerate(rows):
        if site.suspect.kind in candidate.kinds:
            for text in candidate.make(site, chosen):
                if text != before and _parses(text):
                    yield rank, candidate, text


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _kept(site: LeakSite) -> Iterator[cst.BaseExpression]:
    """Yield what the line keeps: the value added or assigned, and what a display has in it."""
    for part in site.parts():
        match part:
            case cst.AugAssign(value=value) | cst.Assign(value=value):
                yield from _displayed(value, site)
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args)):
                if name in ADDS:
                    yield from chain.from_iterable(_displayed(each.value, site) for each in args)


def _displayed(value: cst.BaseExpression, site: LeakSite) -> Iterator[cst.BaseExpression]:
    match value:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            yield from chain.from_iterable(_displayed(each.value, site) for each in elements)
        case cst.Dict(elements=elements):
            yield from chain.from_iterable(_displayed(each.value, site) for each in elements)
        case cst.Name(value="None" | "True" | "False"):
            return
        case cst.Call(func=cst.Name(value=made) | cst.Attribute(attr=cst.Name(value=made))) if (
            made in words("functions", "makes_empty") or _is_class(made, site)
        ):
            return
        case _ if isinstance(value, _KEPT):
            yield value


def _is_class(name: str, site: LeakSite) -> bool:
    """Say whether the file defines a class of this name: what it makes is no plain tensor."""
    return any(each.name.value == name for each in site.source.all(cst.ClassDef))


def _summed(
    value: cst.BaseExpression, targets: set[str], site: LeakSite
) -> list[cst.BaseExpression]:
    """Return what a sum adds to its old value: `loss` of `0.9 * mean + 0.1 * loss`."""
    if isinstance(value, cst.BinaryOperation):
        sides = (value.left, value.right)
        return [*chain.from_iterable(_summed(side, targets, site) for side in sides)]
    return [value] if isinstance(value, _SIMPLE) and site.text(value) not in targets else []


def _targets(site: LeakSite) -> list[str]:
    """Return the names and attributes that the line assigns to."""
    found: list[str] = []
    for part in site.parts():
        if isinstance(part, cst.AugAssign):
            found.append(site.text(part.target))
        elif isinstance(part, cst.Assign):
            for target in part.targets:
                found.extend(_names(target.target, site))
    return found


def _last(text: str) -> str:
    return text.rpartition(".")[2]


def _code(site: LeakSite) -> str:
    return site.source.module.code


def _names(target: cst.BaseExpression, site: LeakSite) -> Iterator[str]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for each in target.elements:
            yield from _names(each.value, site)
    elif isinstance(target, (cst.Name, cst.Attribute)):
        yield site.text(target)


def _called(value: cst.BaseExpression, method: str) -> cst.Call:
    if not takes_method(value):
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(value, cst.Name(method)))


def _is_learned_from(site: LeakSite) -> bool:
    """Say whether the line makes what backward is called on, which needs its graph."""
    code = _code(site)
    return any(f"{name}.backward(" in code for name in _targets(site))


def _detached(site: LeakSite, size: str) -> Iterator[str]:
    for value in () if _is_learned_from(site) else _kept(site):
        if not _is_detached(value):
            yield site.source.replaced(value, _called(value, "detach"))


def _is_detached(value: cst.BaseExpression) -> bool:
    """Say whether a value has no graph as it is written: `loss.detach().clone()`."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value in ("detach", "item", "tolist", "numpy"):
            return True
        value = value.func.value
    return False


def _as_number(site: LeakSite, size: str) -> Iterator[str]:
    targets = set(_targets(site))
    for value in () if _is_learned_from(site) else _kept(site):
        added = _summed(value, targets, site) if isinstance(value, cst.BinaryOperation) else [value]
        for each in added:
            yield site.source.replaced(each, _called(each, "item"))


def _as_float(site: LeakSite, size: str) -> Iterator[str]:
    for value in () if _is_learned_from(site) else _kept(site):
        yield site.source.replaced(value, cst.Call(cst.Name("float"), [cst.Arg(value)]))


def _without_grad(site: LeakSite, size: str) -> Iterator[str]:
    torch = site.source.name_of("torch")
    for line in site.lines() if torch else ():
        item = cst.WithItem(cst.parse_expression(f"{torch}.no_grad()"))
        inside = cst.IndentedBlock([line.with_changes(leading_lines=[])])
        yield site.source.replaced(line, cst.With([item], inside, leading_lines=line.leading_lines))


def _carried_cut(site: LeakSite, size: str) -> Iterator[str]:
    holder = site.holder
    held = [holder.name] if holder.kind in ("local", "global") else []
    if holder.kind == "attribute":
        held = [f"self.{holder.name}"]
    for name in dict.fromkeys([*_targets(site), *held]):
        if _is_there_before(site, name):
            for cut in _CUTS:
                yield from _before_each_step(site, f"{name} = {cut.format(name=name)}")


def _is_there_before(site: LeakSite, name: str) -> bool:
    """Say whether a name may have a value as a step begins."""
    if name.startswith("self.") and site.parameters()[:1] != ["self"]:
        return False
    loops, parts = site.loops(), site.parts()
    made = [each for each in site.source.all(cst.Assign) if _binds(each, name, site)]
    if any(site.text(each.value) in _CONTAINERS for each in made):
        return False
    if "." in name:
        return any(each not in parts for each in made) or f'"{_last(name)}"' in _code(site)
    outside = any(not loops or not within(site, each, loops[0]) for each in made)
    return name in site.parameters() or outside


def _binds(assign: cst.Assign, name: str, site: LeakSite) -> bool:
    return any(name in _names(each.target, site) for each in assign.targets)


# a state is a tensor, a tuple of them (as an LSTM's is), or not there at the first step
_CUTS = (
    "{name}.detach()",
    "tuple(each.detach() for each in {name})",
    "None if {name} is None else {name}.detach()",
    "None if {name} is None else tuple(each.detach() for each in {name})",
)


_CONTAINERS = ("[]", "{}", "list()", "dict()", "set()", "deque()", "collections.deque()")


def _before_each_step(site: LeakSite, text: str) -> Iterator[str]:
    new = site.source.statement(text)
    loops = site.loops()
    if loops and isinstance(loops[0].body, cst.IndentedBlock):
        yield with_body(site.source, loops[0], [new, *loops[0].body.body])
    elif not loops:
        for line in site.lines()[:1]:
            yield beside(site.source, line, [new, line])


def _graph_let_go(site: LeakSite, size: str) -> Iterator[str]:
    def without(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.Call):
            return None
        args = [
            arg
            for arg in node.args
            if arg.keyword is None or arg.keyword.value not in GRAPH_ARGUMENTS
        ]
        if len(args) == len(node.args):
            return None
        last = [args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if args else []
        return node.with_changes(args=[*args[:-1], *last])

    yield site.source.mapped(without, site.source.module)


def _gradients_dropped(site: LeakSite, size: str) -> Iterator[str]:
    """Drop the gradients as a step ends: create_graph ties each parameter to its own."""
    code, loops = _code(site), site.loops()
    if "create_graph" not in code or not loops or not isinstance(loops[0].body, cst.IndentedBlock):
        return
    calls = (site.text(each.func) for each in site.source.all(cst.Call))
    models = (name.removesuffix(".parameters") for name in calls if name.endswith(".parameters"))
    for model in dict.fromkeys(models):
        new = site.source.statement(f"{model}.zero_grad(set_to_none=True)")
        yield with_body(site.source, loops[0], [*body_of(loops[0].body), new])


def _limited(site: LeakSite, size: str) -> Iterator[str]:
    """Make the container that is held a deque of a size."""
    for made in _makings(site):
        if made.value is not None and site.text(made.value) in ("[]", "list()"):
            deque = cst.parse_expression(f"collections.deque(maxlen={size})")
            yield with_import(site.source.replaced(made.value, deque), "collections")


def _makings(site: LeakSite) -> Iterator[cst.Assign | cst.AnnAssign]:
    """Yield the assignments that make the container which holds the leak."""
    name = site.holder.name
    for made in site.source.small_statements():
        if isinstance(made, cst.Assign) and len(made.targets) == 1:
            target = site.text(made.targets[0].target)
        elif isinstance(made, cst.AnnAssign):
            target = site.text(made.target)
        else:
            continue
        if name and target.rpartition(".")[2] == name:
            assert isinstance(made, (cst.Assign, cst.AnnAssign))
            yield made


def _memo_limited(site: LeakSite, size: str) -> Iterator[str]:
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


def _cleared_each_epoch(site: LeakSite, size: str) -> Iterator[str]:
    """Empty the container at the end of the loop around that of the steps."""
    loops = site.loops()
    for part in site.parts():
        match part:
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=container))) if len(loops) > 1:
                new = site.source.statement(f"{site.text(container)}.clear()")
                if isinstance(loops[1].body, cst.IndentedBlock):
                    yield with_body(site.source, loops[1], [*body_of(loops[1].body), new])


def _hook(part: cst.BaseSmallStatement, site: LeakSite) -> bool:
    value = part.value if isinstance(part, (cst.Assign, cst.Expr)) else None
    return isinstance(value, cst.Call) and _is_registering(value, site)


def _is_registering(call: cst.Call, site: LeakSite) -> bool:
    name = _last(site.text(call.func))
    return name.startswith("register_") and name.endswith("hook")


def _hooks(
    site: LeakSite,
) -> Iterator[tuple[cst.SimpleStatementLine, cst.BaseSmallStatement, LeakSite]]:
    """Yield the lines that register a hook: that of the site, or any where hooks pile up."""
    every = not site.lines() or site.holder.name.endswith("_hooks")
    for line in site.source.all(cst.SimpleStatementLine) if every else site.lines():
        if len(line.body) == 1 and _hook(line.body[0], site):
            yield (
                line,
                line.body[0],
                LeakSite(site.source, site.source.start(line)[0], site.suspect),
            )


def _handle_removed(site: LeakSite, size: str) -> Iterator[str]:
    for line, part, at in _hooks(site):
        loops = at.loops()
        if not loops:
            yield from closed(at, size)
        if not loops or site.source.parents[line] is not loops[0].body:
            continue
        names, registers = _targets(at), line
        if not names and isinstance(part, cst.Expr):
            names = ["handle"]
            assigned = cst.Assign([cst.AssignTarget(cst.Name("handle"))], part.value)
            registers = line.with_changes(body=[assigned])
        if len(names) == 1:
            body = [registers if each is line else each for each in body_of(loops[0].body)]
            yield with_body(
                site.source, loops[0], [*body, site.source.statement(f"{names[0]}.remove()")]
            )


def _registered_once(site: LeakSite, size: str) -> Iterator[str]:
    for line, _, at in _hooks(site):
        yield from before_loop(at, line)


def _hooked_weakly(site: LeakSite, size: str) -> Iterator[str]:
    """Give a hook of a Node a weak reference: one that leads to its own tensor is never freed."""
    if site.suspect.holder.kind != "graph hook":
        return
    weakref = site.source.name_of("weakref") or "weakref"
    proxy = f"{weakref}.proxy(self)"
    for call in site.source.all(cst.Call):
        for arg in call.args if _is_registering(call, site) else ():
            match arg.value:
                case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=method)):
                    weak = f"functools.partial(type(self).{method}, {proxy})"
                    text = site.source.replaced(arg.value, cst.parse_expression(weak))
                    yield with_import(with_import(text, "functools"), weakref)
                case cst.Name(value=name):
                    for given in _partials(name, site):
                        text = site.source.replaced(given, cst.parse_expression(proxy))
                        yield with_import(text, weakref)


def _partials(name: str, site: LeakSite) -> Iterator[cst.BaseExpression]:
    """Yield the `self` that a partial of this name is given."""
    for made in site.source.all(cst.Assign):
        match made.value:
            case cst.Call(func=func, args=[_, *given]) if _last(site.text(func)) == "partial":
                if _binds(made, name, site):
                    yield from (each.value for each in given if site.text(each.value) == "self")


TABLE = (
    Candidate("item", TITLES["item"], _GRAPH, _as_number, loses="graph"),
    Candidate("detach", TITLES["detach"], _ANY, _detached, loses="graph"),
    Candidate("float", "keep the number: float()", _ANY, _as_float, loses="graph"),
    Candidate(
        "carried",
        "detach what is carried over as a step begins",
        _GRAPH,
        _carried_cut,
        loses="graph",
    ),
    Candidate(
        "no-grad", "make no graph there: torch.no_grad()", _GRAPH, _without_grad, loses="graph"
    ),
    Candidate("graph", TITLES["graph"], _ANY, _graph_let_go, loses="graph"),
    Candidate("gradients", "drop the gradients as the step ends", _GRAPH, _gradients_dropped),
    Candidate("weak-hook", "let the hook refer to its object weakly", _GRAPH, _hooked_weakly),
    Candidate("handle", "remove the hook as the step ends", _ANY, _handle_removed),
    Candidate("once", "register the hook once, before the loop", _ANY, _registered_once),
    Candidate("clear", "empty it as each epoch ends", _ANY, _cleared_each_epoch, loses="value"),
    Candidate("text", "keep the words of the exception", _ANY, as_text, loses="value"),
    Candidate("copy", "keep a copy of the part", _MEMORY, copied),
    Candidate("close", "end it where it is made", _OPENED, closed),
    Candidate("made-once", "make it once, before the loop", _OPENED, made_once, loses="value"),
    Candidate("drop", "do not keep it: nothing reads it", _ANY, dropped, to_end=True),
    Candidate("weak", "keep a weak reference", _ANY, weakly, loses="value"),
    Candidate("unlinked", "do not keep the one before it", _ANY, unlinked, loses="value"),
    Candidate("rewind", "begin the file in memory anew", _MEMORY, rewound, loses="value"),
    Candidate("coalesce", "add up what a sparse tensor has of one place", _MEMORY, coalesced),
    Candidate("place", "keep its place alone: nothing reads it", _ANY, emptied, to_end=True),
    Candidate(
        "deque", "keep the last ones only", _ANY, _limited, "how many to keep", loses="value"
    ),
    Candidate("window", "drop the oldest ones", _ANY, windowed, "how many to keep", loses="value"),
    Candidate(
        "slice", "keep the last rows only", _ANY, sliced, "how many rows to keep", loses="value"
    ),
    Candidate("trim", "drop the oldest entry", _ANY, trimmed, "how many to keep", loses="value"),
    Candidate("memo", "limit the cache", _ANY, _memo_limited, "how many results to keep"),
)
