"""What is done with one mention of a name, by what stands around it."""

from __future__ import annotations

from functools import lru_cache

import libcst as cst

from leakcheck.cure.reads import last_word
from leakcheck.cure.sites import MOST_READ, SourceTree
from leakcheck.cure.slots import CHANGES
from leakcheck.source.words import words
from leakcheck.static import torch_api

_TAKES_NUMBERS = words("functions", "takes_numbers") | torch_api.words("methods", "show")
_LEARN_LITTLE = words("functions", "measures")
_BINDS = (cst.AssignTarget, cst.AnnAssign, cst.Param, cst.NameItem, cst.Del, cst.AsName)
# what is done with a value there, a number does too; what is bound there, is followed
_ENDS = (
    cst.FormattedStringExpression, cst.Expr, cst.If, cst.While, cst.Assert, cst.Raise,
    cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Yield, cst.For, cst.CompFor,
)  # fmt: skip
_COMPUTES = words("functions", "computes")
_OF_NUMBERS = words("functions", "of_numbers")


def only_fills(source: SourceTree, name: cst.Name) -> bool:
    """Whether a mention binds the name, or puts in or takes out, and reads nothing."""
    value = source.spelled(name)
    for outer in source.around(value):
        match outer:
            case cst.Subscript(value=held) if held is value:
                value = outer
            case cst.AssignTarget() | cst.NameItem() | cst.Param() | cst.Del() | cst.ImportAlias():
                return True
            case cst.FunctionDef(name=bound) | cst.ClassDef(name=bound):
                return bound is value
            case (
                cst.AnnAssign(target=target)
                | cst.AugAssign(target=target)
                | cst.For(target=target)
                | cst.CompFor(target=target)
                | cst.NamedExpr(target=target)
                | cst.AsName(name=target)
            ):
                return target is value
            case cst.Tuple() | cst.List() | cst.Element() | cst.StarredElement():
                value = outer
            case cst.Attribute(attr=cst.Name(value=method)) if method in CHANGES:
                call = source.parents[outer]
                return isinstance(source.parents[call], cst.Expr)
            case _:
                return False
    return False


def does_with_a_number(source: SourceTree, name: cst.CSTNode) -> bool:
    """Whether a value is bound, printed or computed with, and asked for nothing a tensor has."""
    value = source.spelled(name)
    for outer in source.around(value):
        match outer:
            case (
                cst.BinaryOperation()
                | cst.UnaryOperation()
                | cst.Comparison()
                | cst.ComparisonTarget()
                | cst.BooleanOperation()
                | cst.IfExp()
                | cst.Subscript()
                | cst.Tuple()
                | cst.List()
                | cst.Dict()
                | cst.BaseElement()
                | cst.BaseDictElement()
                | cst.NamedExpr()
            ):
                value = outer
            case _ if isinstance(outer, _ENDS):
                return True
            case cst.Arg():
                call = source.parents[outer]
                if not isinstance(call, cst.Call) or not _takes_numbers(source, call):
                    return False
                if last_word(call.func) not in _COMPUTES:
                    return True
                value = call
            case cst.Call(func=called) if called is not value:
                continue
            case _:
                return False
    return False


def _takes_numbers(source: SourceTree, call: cst.Call) -> bool:
    match call.func:
        case cst.Name(value=name):
            return name in _TAKES_NUMBERS and name not in _of_torch(source)
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            is_known = name in _TAKES_NUMBERS | CHANGES or last_word(owner) in _OF_NUMBERS
            return is_known and source.text(owner).partition(".")[0] not in _of_torch(source)
    return False


@lru_cache(maxsize=MOST_READ)
def _of_torch(source: SourceTree) -> frozenset[str]:
    """Return the names by which a file calls torch, its modules and its functions."""
    imports = [
        (alias, alias.evaluated_name) for each in source.all(cst.Import) for alias in each.names
    ]
    for each in source.all(cst.ImportFrom):
        if each.module is not None and not isinstance(each.names, cst.ImportStar):
            imports += [(alias, source.text(each.module)) for alias in each.names]
    return frozenset({"torch"}).union(
        alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
        for alias, module in imports
        if module.partition(".")[0] == "torch"
    )


def is_part(source: SourceTree, name: cst.Name) -> bool:
    """Whether a mention of an object leads to one of its attributes, binds it or calls it."""
    value = source.spelled(name)
    for outer in source.around(value):
        match outer:
            case cst.Attribute() | cst.ImportAlias():
                return True
            case cst.Call(func=called):
                return called is value
            case cst.Arg():
                call = source.parents[outer]
                return isinstance(call, cst.Call) and last_word(call.func) in _LEARN_LITTLE
            case cst.Assign() | cst.Return() | cst.Expr():
                return True  # an alias is followed
            case _:
                return isinstance(outer, _BINDS)
    return False
