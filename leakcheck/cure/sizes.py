"""What a program prints that merely tells how much is kept: `print(len(kept))`.

An edit that keeps less changes it by its very purpose. Two runs of a text without it show whether
all else is the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.cure.sites import SourceTree, read
from leakcheck.model import Suspect

_METHODS = ("qsize", "numel", "nelement", "_nnz")
_ATTRIBUTES = ("size", "nbytes")
_LISTS = {"get_fignums": "figs"}  # a function that lists what is in a container of this name


def names_of(suspect: Suspect) -> frozenset[str]:
    """Return what the source may call the container that a leak is kept in."""
    holder = suspect.holder
    holders = (holder, holder.start)
    functions = (each.function.rpartition(".")[2] for each in holders if each.kind == "memo")
    return frozenset({*(each.name for each in holders), *functions} - {""})


def without_sizes(text: str, names: frozenset[str]) -> str:
    """Return a text that prints 0 in the place of each size of what has one of these names.

    A size that is printed as it is tells nothing else; one that anything is made of may.
    """
    if "print" not in text:
        return text
    source = read(text)
    sizes = {each for each in _printed(source) if _is_size(each, names)} if source else set()
    if source is None or not sizes:
        return text
    return source.exchanged({each: cst.Integer("0") for each in sizes})


def _printed(source: SourceTree) -> Iterator[cst.BaseExpression]:
    """Yield what is printed as it is: an argument of print, a value in a text that is one."""
    for call in source.all(cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value == "print":
            for arg in call.args:
                yield from _parts(arg.value)


def _parts(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    yield value
    match value:
        case cst.FormattedString(parts=parts):
            for part in parts:
                if isinstance(part, cst.FormattedStringExpression):
                    yield part.expression
        case cst.ConcatenatedString(left=left, right=right):
            yield from _parts(left)
            yield from _parts(right)
        case cst.Call(func=cst.Name(value="str"), args=[arg]):
            yield arg.value


def _is_size(value: cst.BaseExpression, names: frozenset[str]) -> bool:
    match value:
        case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=of)]):
            return _name(of) in names
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name(value=name)), args=[]):
            return name in _METHODS and _name(of) in names
        case cst.Attribute(value=cst.Call(func=made, args=[]), attr=cst.Name(value="currsize")):
            return isinstance(made, cst.Attribute) and _name(made.value) in names
        case cst.Attribute(value=of, attr=cst.Name(value=name)):
            return name in _ATTRIBUTES and _name(of) in names
    return False


def _name(value: cst.BaseExpression) -> str:
    match value:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
        case cst.Call(func=made, args=[]):
            return _LISTS.get(_name(made), "")
    return ""
