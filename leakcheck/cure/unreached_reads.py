"""What a program that was stopped may still do with what an edit takes from it.

A run that was stopped shows nothing of what comes later: a backward after the loop needs the graph
that an edit cuts, and a mean of all that was kept needs every value.
"""

from __future__ import annotations

import libcst as cst

from leakcheck.cure.reads import names, reads, within
from leakcheck.cure.sites import LeakSite
from leakcheck.model import Reason

_LEARNS = ("backward", "grad", "vjp", "jvp")
_TAKES_NUMBERS = frozenset(
    {"print", "float", "int", "str", "bool", "len", "sum", "min", "max", "round"}
)


def unreached_backward(site: LeakSite, path: str) -> Reason | None:
    """Return where a gradient may be asked for that the run did not come to."""
    for call in site.source.all(cst.Call):
        learns = site.text(call.func).rpartition(".")[2] in _LEARNS
        if learns and _may_come_later(site, call):
            return _reason("backward-later", site, path, call)
    return None


def unreached_read(site: LeakSite, path: str) -> Reason | None:
    """Return where what is kept may be read that the run did not come to."""
    for name in reads(site):
        if _may_come_later(site, name):
            return _reason("read-later", site, path, name)
    return None


def unreached_tensor(site: LeakSite, path: str) -> Reason | None:
    """Return where what is kept may be used as a tensor, which a number is not."""
    for name in reads(site):
        if _may_come_later(site, name) and not _does_with_a_number(site, name):
            return _reason("read-later", site, path, name)
    return unreached_backward(site, path)


def named_later(site: LeakSite, path: str) -> Reason | None:
    """Return where another file names what is kept outside of all loops, so perhaps after them."""
    for name in names(site):
        around = site.source.around(name)
        if not any(isinstance(each, (cst.For, cst.While)) for each in around):
            return _reason("read-later", site, path, name)
    return None


def _does_with_a_number(site: LeakSite, name: cst.Name) -> bool:
    """Whether a value is printed or computed with, and asked for nothing that a tensor has."""
    value: cst.CSTNode = name
    for outer in site.source.around(name):
        match outer:
            case cst.Attribute(attr=attr) if attr is value:
                value = outer
            case cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison() | cst.Subscript():
                value = outer
            case cst.FormattedStringExpression() | cst.Expr() | cst.If():
                return True
            case cst.Arg():
                call = site.source.parents[outer]
                return isinstance(call, cst.Call) and site.text(call.func) in _TAKES_NUMBERS
            case _:
                return False
    return False


def _may_come_later(site: LeakSite, node: cst.CSTNode) -> bool:
    """Whether a node is after the loops around the site, or elsewhere in a line with its holder."""
    loops, parts = site.loops(), site.parts()
    if loops and within(site, node, loops[-1]):
        return False
    if parts and _function(site, node) is _function(site, parts[0]):
        return bool(loops) and site.source.start(node) > site.source.start(loops[-1])
    statement = _statement(site, node)
    return any(each is node or within(site, each, statement) for each in names(site))


def _function(site: LeakSite, node: cst.CSTNode) -> cst.CSTNode | None:
    around = site.source.around(node)
    return next((each for each in around if isinstance(each, (cst.FunctionDef, cst.Lambda))), None)


def _statement(site: LeakSite, node: cst.CSTNode) -> cst.CSTNode:
    around = site.source.around(node)
    return next((each for each in around if isinstance(each, cst.BaseSmallStatement)), node)


def _reason(code: str, site: LeakSite, path: str, node: cst.CSTNode) -> Reason:
    line = site.source.start(node)[0]
    return Reason.of(code, code=site.text(_statement(site, node)), path=path, line=line)
