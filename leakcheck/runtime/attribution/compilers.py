"""What torch.compile keeps: the graphs it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from types import FunctionType
from typing import Any

from leakcheck.model import Holder
from leakcheck.runtime.attribution.following import Retention
from leakcheck.runtime.introspection import objects
from leakcheck.runtime.introspection.kinds import module_of, types_named

MOST_ASKED = 16  # of the names that were added last to a module
_COMPILERS = (  # modules
    "torch._dynamo",
    "torch._functorch",
    "torch._inductor",
    "torch.fx",
)


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


def is_filled(names: Any) -> bool:
    """Say whether the compiler made most of what was added last to a dictionary: its functions.

    It notes each as a global of the module that it compiled; what comes again is no gain.
    """
    added = [each for each in objects.newest(names, MOST_ASKED) if type(each) is not str]
    times = Counter(map(id, added))
    once = [each for each in added if times[id(each)] == 1]
    functions = [each for each in once if type(each) is FunctionType]
    modules = [str(each.__globals__.get("__name__")) for each in functions]
    return 2 * sum(map(_is_made, modules)) > len(once)


def is_of_compiler(root: Holder) -> bool:
    """Say whether a root is a global of the compiler's, or an attribute of a class of its own."""
    if root.kind == "class attribute":
        return any(_is_made(module_of(kind)) for kind in types_named(root.owner))
    return root.kind == "global" and _is_made(root.owner)


def _is_made(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in _COMPILERS)
