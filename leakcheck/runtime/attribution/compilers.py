"""What torch.compile keeps: the graphs it made, and the tensors it made them with."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from leakcheck.model import Holder
from leakcheck.runtime.attribution.following import Retention
from leakcheck.runtime.introspection.kinds import module_of, types_named

_STAND_INS = "torch._subclasses"  # module of FakeTensor
_COMPILERS = ("torch._dynamo", "torch._functorch", "torch._inductor", "torch.fx")  # modules


def is_compiled(found: Retention, growing: Set[int]) -> bool:
    """Say whether the compiler itself keeps something, in no container of the program's that grows.

    `growing`: the ids of containers. A list of compiled models is the program's own.
    """
    if is_of_compiler(found.told.holder.start):
        return True
    in_module = found.told.holder.start.kind == "global"  # in the globals of the compiled function
    owners = found.owners[in_module:]
    first = next((at for at, one in enumerate(owners) if _is_made(module_of(type(one)))), None)
    return first is not None and growing.isdisjoint(map(id, owners[:first]))


def is_traced(thing: Any, found: Retention) -> bool:
    """Say whether a tensor is one that torch.compile traces with, and no holder of it is known.

    The way from it to the compiler's tables is long: a search may end before.
    """
    unknown = found.outside or not found.told.holder
    return unknown and module_of(type(thing)).startswith(_STAND_INS)


def is_of_compiler(root: Holder) -> bool:
    """Say whether a root is a global of the compiler's, or an attribute of a class of its own."""
    if root.kind == "class attribute":
        return any(_is_made(module_of(kind)) for kind in types_named(root.owner))
    return root.kind == "global" and _is_made(root.owner)


def _is_made(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in _COMPILERS)
