"""What a condition says about types: in which branch is a name certainly no tensor?"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.torch_api import words

_TENSOR_MEMBERS = frozenset({"item", "detach", "grad_fn", "backward", "cpu", "requires_grad"})
_PLAIN_TYPES = frozenset({"int", "float", "str", "bool", "Number", "numbers.Number", "np.ndarray",
                          "numpy.ndarray"})  # fmt: skip

PathOf = Callable[[cst.CSTNode], str]
NameOf = Callable[[cst.BaseExpression], str]


def plain_when(test: cst.BaseExpression, truth: bool, path: PathOf, name: NameOf) -> list[str]:
    """Name the places that hold no tensor with a graph when the test comes out as `truth`.

    `path` tells the place of an expression, `name` what it refers to by the imports.
    """
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return plain_when(inner, not truth, path, name)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            one, other = (plain_when(each, truth, path, name) for each in (left, right))
            if isinstance(operator, cst.And) == truth:
                return one + other
            return [place for place in one if place in other]
        case cst.Call(func=function, args=[cst.Arg(value=subject), *rest]):
            return _by_type(syntax.dotted(function), path(subject), rest, truth, name)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget() as compared]):
            if isinstance(left, cst.Attribute) and left.attr.value == "grad_fn":
                left = left.value  # without a grad_fn there is no graph
            return _by_none(path(left), compared, truth)
        case cst.Attribute(value=subject, attr=cst.Name(value="requires_grad")) if not truth:
            return [place for place in (path(subject),) if place]
    return []


def _by_type(
    function: str, place: str, rest: list[cst.Arg], truth: bool, name: NameOf
) -> list[str]:
    if not place:
        return []
    if function.endswith("is_tensor") and not truth:
        return [place]
    if not rest:
        return []
    about = rest[0].value
    if function == "hasattr":
        return [place] if syntax.constant(about) in _TENSOR_MEMBERS and not truth else []
    if function != "isinstance":
        return []
    types = [each.value for each in about.elements] if isinstance(about, cst.Tuple) else [about]
    names = [syntax.dotted(each) for each in types]
    of_all = words("types", "of_every_tensor").intersection(map(name, types))
    if of_all or any(each.rpartition(".")[2].endswith("Tensor") for each in names):
        return [] if truth else [place]
    plain = bool(names) and all(each in _PLAIN_TYPES for each in names)
    return [place] if truth and plain else []


def _by_none(place: str, compared: cst.ComparisonTarget, truth: bool) -> list[str]:
    if not place or syntax.constant(compared.comparator) is not None:
        return []
    is_none = isinstance(compared.operator, (cst.Is, cst.Equal))
    return [place] if is_none == truth else []
