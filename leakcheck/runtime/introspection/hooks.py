"""Where torch keeps hooks: of modules, of optimizers, of tensors, and for all of a kind at once.

Read from dictionaries and from C, as a method or a property of the program's would be run.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

from leakcheck.runtime.introspection.kinds import attributes_of, entries_of, is_of

OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_OF_MODULES = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_OF_OPTIMIZERS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
_FOR_ALL = ("torch.nn.modules.module", "torch.optim.optimizer")  # as `_global_forward_hooks`
MOST_TENSORS = 20_000  # 0.4 us each; a program that keeps more is told by its tensors alone


def count_hooks(modules: list[Any], optimizers: list[Any], tensors: list[Any]) -> int:
    """Return how many hooks there are: one more each step slows every later one."""
    tables = [
        *(attributes_of(module).get(name) for module in modules for name in _OF_MODULES),
        *(attributes_of(each).get(name) for each in optimizers for name in _OF_OPTIMIZERS),
        *_for_all(),
    ]
    if len(tensors) <= MOST_TENSORS:
        tables += _of_tensors(tensors)
    return sum(dict.__len__(table) for table in tables if is_of(table, dict))


def hooks_of(tensor: Any, kind: str) -> Any:
    """Return the hooks of a kind, of `OF_TENSORS`, registered on a tensor; None if none are."""
    return next(_of_tensors([tensor], (kind,)), None)


def tables_of(tensors: Sequence[Any]) -> dict[int, list[Any]]:
    """Map the tables of hooks of some tensors, by id, to the tensors; of too many none."""
    found: dict[int, list[Any]] = {}
    if len(tensors) <= MOST_TENSORS:
        for kind in OF_TENSORS:
            for tensor, table in zip(tensors, _of_tensors(tensors, (kind,)), strict=False):
                if table is not None:
                    found.setdefault(id(table), []).append(tensor)
    return found


def is_table(thing: Any) -> bool:
    """Say whether it is a dictionary of hooks by number, as torch makes one for C++ to keep."""
    if type(thing) is not OrderedDict and type(thing) is not dict:
        return False
    entries = entries_of(thing)
    return bool(entries) and all(type(key) is int and callable(each) for key, each in entries)


def function_of(hook: Any) -> FunctionType | None:
    """Return the function of Python's that a hook is in the end, None if it is none."""
    while type(hook) is functools.partial:
        hook = hook.func
    function = hook.__func__ if type(hook) is MethodType else hook
    return function if type(function) is FunctionType else None


def _of_tensors(tensors: Iterable[Any], kinds: tuple[str, ...] = OF_TENSORS) -> Iterator[Any]:
    torch = sys.modules.get("torch")
    known = [getattr(torch._C.TensorBase, kind, None) for kind in kinds] if torch else []
    readers = [each.__get__ for each in known if each is not None]
    if torch is None or not readers:
        return
    with torch._C.DisableTorchFunction():
        found = [read(tensor) for tensor in tensors for read in readers]
    yield from found


def _for_all() -> Iterator[Any]:
    for name in _FOR_ALL:
        named = vars(sys.modules[name]) if name in sys.modules else {}
        for key, each in named.items():
            if key.startswith("_global_") and key.endswith("_hooks"):
                yield each
