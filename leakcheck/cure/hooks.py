"""Edits of hooks: each is removed after use, registered once, or refers to its object weakly."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.cure.ended import before_loop, closed, gives_handle
from leakcheck.cure.reads import binds, last_part, targets
from leakcheck.cure.rewriting import body_of, with_body, with_import
from leakcheck.cure.sites import LeakSite


def handle_removed(site: LeakSite, size: str) -> Iterator[str]:
    """Remove what a step registers as the step ends."""
    for line, part, at in _hooks(site):
        loops = at.loops()
        if not loops:
            yield from closed(at, size)
        if not loops or site.source.parents[line] is not loops[0].body:
            continue
        names, registers = targets(at), line
        if not names and isinstance(part, cst.Expr):
            names = ["handle"]
            assigned = cst.Assign([cst.AssignTarget(cst.Name("handle"))], part.value)
            registers = line.with_changes(body=[assigned])
        if len(names) == 1:
            body = [registers if each is line else each for each in body_of(loops[0].body)]
            yield with_body(
                site.source, loops[0], [*body, site.source.statement(f"{names[0]}.remove()")]
            )


def registered_once(site: LeakSite, size: str) -> Iterator[str]:
    """Register before the loop."""
    for line, _, at in _hooks(site):
        yield from before_loop(at, line)


def hooked_weakly(site: LeakSite, size: str) -> Iterator[str]:
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


def called_weakly_at_exit(site: LeakSite, size: str) -> Iterator[str]:
    """Call a method at the exit if its object is still there: `atexit` keeps what it is given."""
    weakref = site.source.name_of("weakref") or "weakref"
    for call in site.source.all(cst.Call):
        if not _is_for_exit(call, site):
            continue
        match call.args[0].value:
            case cst.Attribute(value=cst.Name(value="self" as owner), attr=cst.Name(value=method)):
                living = f"lambda living={weakref}.ref({owner}): living() and living().{method}()"
                made = cst.parse_expression(living)
                yield with_import(site.source.replaced(call.args[0].value, made), weakref)


def _is_for_exit(call: cst.Call, site: LeakSite) -> bool:
    """Whether a call hands something without arguments to `atexit`."""
    module = site.source.name_of("atexit")
    return bool(module) and site.text(call.func) == f"{module}.register" and len(call.args) == 1


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


def _hook(part: cst.BaseSmallStatement, site: LeakSite) -> bool:
    value = part.value if isinstance(part, (cst.Assign, cst.Expr)) else None
    return isinstance(value, cst.Call) and _is_registering(value, site)


def _is_registering(call: cst.Call, site: LeakSite) -> bool:
    return gives_handle(last_part(site.text(call.func)))


def _partials(name: str, site: LeakSite) -> Iterator[cst.BaseExpression]:
    """Yield the `self` that a partial of this name is given."""
    for made in site.source.all(cst.Assign):
        match made.value:
            case cst.Call(func=func, args=[_, *given]) if last_part(site.text(func)) == "partial":
                if binds(made, name, site):
                    yield from (each.value for each in given if site.text(each.value) == "self")
