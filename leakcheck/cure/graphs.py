"""Edits that cut a graph: a number or a detached value is kept, or no graph is made at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import libcst as cst

from leakcheck.cure.reads import ADDS, binds, last_part, targets, within
from leakcheck.cure.rewriting import beside, body_of, with_body
from leakcheck.cure.sites import LeakSite
from leakcheck.source.words import words
from leakcheck.static.cuts import GRAPH_ARGUMENTS, takes_method

_SIMPLE = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
_KEPT = (*_SIMPLE, cst.BinaryOperation, cst.UnaryOperation)
_CONTAINERS = ("[]", "{}", "list()", "dict()", "set()", "deque()", "collections.deque()")
_CUT, _EACH_CUT = "{name}.detach()", "tuple(each.detach() for each in {name})"
_IF_THERE = "None if {name} is None else "


def detached(site: LeakSite, size: str) -> Iterator[str]:
    """Keep the value without its graph."""
    kept = (each for each in _cut_from(site) if not _is_detached(each))
    yield from _each_then_all(site, [(each, _called(each, "detach")) for each in kept])


def as_number(site: LeakSite, size: str) -> Iterator[str]:
    """Keep the number alone: `.item()`; of a sum, that of what is added."""
    assigned = set(targets(site))
    added = chain.from_iterable(
        _summed(value, assigned, site) if isinstance(value, cst.BinaryOperation) else [value]
        for value in _cut_from(site)
    )
    yield from _each_then_all(site, [(each, _called(each, "item")) for each in added])


def as_float(site: LeakSite, size: str) -> Iterator[str]:
    """Keep the number alone, also of what is no tensor."""
    made = ((each, cst.Call(cst.Name("float"), [cst.Arg(each)])) for each in _cut_from(site))
    yield from _each_then_all(site, [*made])


def without_grad(site: LeakSite, size: str) -> Iterator[str]:
    """Make no graph in the statement."""
    torch = site.source.name_of("torch")
    for line in site.lines() if torch else ():
        if _is_suspended_in(site, line):
            continue
        item = cst.WithItem(cst.parse_expression(f"{torch}.no_grad()"))
        inside = cst.IndentedBlock([line.with_changes(leading_lines=[])])
        yield site.source.replaced(line, cst.With([item], inside, leading_lines=line.leading_lines))


def function_without_grad(site: LeakSite, size: str) -> Iterator[str]:
    """Make no graph in the function that the line is in."""
    torch, function = site.source.name_of("torch"), site.function()
    if torch and function is not None and not _is_suspended_in(site, function):
        mode = cst.Decorator(cst.parse_expression(f"{torch}.no_grad()"))
        decorators = [*function.decorators, mode]
        yield site.source.replaced(function, function.with_changes(decorators=decorators))


def _is_suspended_in(site: LeakSite, node: cst.CSTNode) -> bool:
    """Say whether other code may run in between, of the same thread and so without gradients."""
    if isinstance(node, cst.FunctionDef) and node.asynchronous is not None:
        return True
    waits = [*site.source.all(cst.Await), *site.source.all(cst.Yield)]
    return any(within(site, each, node) for each in waits)


def carried_cut(site: LeakSite, size: str) -> Iterator[str]:
    """Cut what one step hands to the next as a step begins."""
    holder = site.holder
    held = [holder.name] if holder.kind in ("local", "global") else []
    if holder.kind == "attribute":
        held = [f"self.{holder.name}"]
    for name in dict.fromkeys([*targets(site), *held]):
        if _is_there_before(site, name):
            for cut in _cuts(site, name):
                yield from _before_each_step(site, f"{name} = {cut.format(name=name)}")


def graph_let_go(site: LeakSite, size: str) -> Iterator[str]:
    """Let one call free its graph: without `retain_graph` and `create_graph`.

    Others may be of a branch that the run did not come by, and need theirs.
    """
    for call in site.source.all(cst.Call):
        args = [arg for arg in call.args if not _keeps_graph(arg)]
        if len(args) < len(call.args):
            last = [args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if args else []
            yield site.source.replaced(call, call.with_changes(args=[*args[:-1], *last]))


def _keeps_graph(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value in GRAPH_ARGUMENTS


def gradients_dropped(site: LeakSite, size: str) -> Iterator[str]:
    """Drop the gradients as a step ends: create_graph ties each parameter to its own."""
    code, loops = _code(site), site.loops()
    if "create_graph" not in code or not loops or not isinstance(loops[0].body, cst.IndentedBlock):
        return
    calls = (site.text(each.func) for each in site.source.all(cst.Call))
    models = (name.removesuffix(".parameters") for name in calls if name.endswith(".parameters"))
    for model in dict.fromkeys(models):
        new = site.source.statement(f"{model}.zero_grad(set_to_none=True)")
        yield with_body(site.source, loops[0], [*body_of(loops[0].body), new])


def _each_then_all(
    site: LeakSite, made: Sequence[tuple[cst.CSTNode, cst.CSTNode]]
) -> Iterator[str]:
    """Yield the text with each value cut alone, then with all of them."""
    for old, new in made:
        yield site.source.replaced(old, new)
    if len(made) > 1:
        yield site.source.exchanged(dict(made))


def _cut_from(site: LeakSite) -> Iterator[cst.BaseExpression]:
    """Yield what the line keeps, nothing if backward needs the graph of what it makes."""
    return iter(()) if _is_learned_from(site) else _kept(site)


def _cuts(site: LeakSite, name: str) -> Iterator[str]:
    """Yield how a state is cut: a tensor, a tuple of them, as an LSTM's, or not there at first."""
    is_one = any(
        isinstance(part, cst.AugAssign)
        or (isinstance(part, cst.Assign) and isinstance(part.value, cst.BinaryOperation))
        for part in site.parts()
    )
    cuts = (_CUT,) if is_one else (_CUT, _EACH_CUT)
    yield from cuts
    is_passed = name.startswith("self.") or name in site.parameters()
    made = (each for each in site.source.all(cst.Assign) if binds(each, name, site))
    if is_passed or any(site.text(each.value) == "None" for each in made):
        yield from (f"{_IF_THERE}{cut}" for cut in cuts)


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


def _called(value: cst.BaseExpression, method: str) -> cst.Call:
    if not takes_method(value):
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(value, cst.Name(method)))


def _is_learned_from(site: LeakSite) -> bool:
    """Say whether the line makes what backward is called on."""
    learned = {site.text(each.func) for each in site.source.all(cst.Call)}
    return any(f"{name}.backward" in learned for name in targets(site))


def _is_detached(value: cst.BaseExpression) -> bool:
    """Say whether a value has no graph as it is written: `loss.detach().clone()`."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value in ("detach", "item", "tolist", "numpy"):
            return True
        value = value.func.value
    return False


def _is_there_before(site: LeakSite, name: str) -> bool:
    """Say whether a name may have a value as a step begins."""
    if name.startswith("self.") and site.parameters()[:1] != ["self"]:
        return False
    loops, parts = site.loops(), site.parts()
    made = [each for each in site.source.all(cst.Assign) if binds(each, name, site)]
    if any(site.text(each.value) in _CONTAINERS for each in made):
        return False
    if "." in name:
        return any(each not in parts for each in made) or f'"{last_part(name)}"' in _code(site)
    outside = any(not loops or not within(site, each, loops[0]) for each in made)
    return name in site.parameters() or outside


def _before_each_step(site: LeakSite, text: str) -> Iterator[str]:
    new = site.source.statement(text)
    loops = site.loops()
    if loops and isinstance(loops[0].body, cst.IndentedBlock):
        yield with_body(site.source, loops[0], [new, *loops[0].body.body])
    elif not loops and site.function() is not None:
        for line in site.lines()[:1]:
            yield beside(site.source, line, [new, line])


def _code(site: LeakSite) -> str:
    return site.source.module.code
