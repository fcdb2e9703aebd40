"""Answers for programs that ask a fake tensor for its value: healthy training, not a coin toss.

`if torch.isnan(loss)` and `if not torch.isfinite(loss).all()` guard against what does not happen in
a healthy run, so the answer follows from the question: tensors that say whether numbers are finite
carry what they would say, through the operators that combine them. Everything else is False, 1.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

_TRUTH: Final = "_leakcheck_truth"
_SAME: Final = frozenset(
    ("all", "any", "view", "reshape", "_unsafe_view", "detach", "alias", "clone", "_to_copy")
) | {"squeeze", "unsqueeze", "expand", "select", "slice", "lift_fresh", "max", "min"}
_BOTH: Final = frozenset(("mul", "logical_and", "bitwise_and"))
_EITHER: Final = frozenset(("logical_or", "bitwise_or", "add"))
_NOT: Final = frozenset(("logical_not", "bitwise_not"))


def scalar(tensor: torch.Tensor) -> bool | int | float:
    """The number a tensor without numbers is taken to hold."""
    if tensor.dtype is torch.bool:
        return bool(getattr(tensor, _TRUTH, False))
    return 1.0 if tensor.dtype.is_floating_point else 1


def follow(name: str, args: tuple[Any, ...], out: object) -> None:
    """Let the outcome of an operator carry whether its numbers would be finite, if it asks that."""
    if isinstance(out, torch.Tensor) and out.dtype is torch.bool:
        truth = _truth(name, args)
        if truth is not None:
            setattr(out, _TRUTH, truth)


def _truth(name: str, args: tuple[Any, ...]) -> bool | None:
    if name in ("isnan", "isinf"):
        return False
    if name in ("eq", "ne") and len(args) > 1 and _asks_for_finite(*args[:2]):
        # x == x is False for NaN alone, x == inf for every healthy number
        return (args[0] is args[1]) is (name == "eq")
    known = [getattr(arg, _TRUTH, None) for arg in args if isinstance(arg, torch.Tensor)]
    if not known or None in known:
        return None
    if name in _SAME:
        return bool(known[0])
    if name in _NOT:
        return not known[0]
    if name in _BOTH:
        return all(known)
    return any(known) if name in _EITHER else None


def _asks_for_finite(left: object, right: object) -> bool:
    return left is right or (isinstance(right, float) and math.isinf(right))
