"""The lines that make a holder: the assignment of a root's name, an attribute, a function's def."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from types import FunctionType
from typing import Any

from leakcheck.runtime.attribution import trace
from leakcheck.runtime.attribution.holders import Chain, path_of_class
from leakcheck.runtime.introspection import frames, objects
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.kinds import attribute_holding, name_of
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.source import assignments
from leakcheck.source.tree import File

_Find = Callable[[File, str, str], int | None]  # of a function or class, and a name


def held_at(chain: Chain) -> list[Site]:
    """Return the user's lines that make the holders of a chain, the nearest to the leak first."""
    sites = [_of_pair(*three) for three in _threes(chain)]
    found = [site for site in reversed(sites) if site is not None]
    named = next(iter(_below_root(chain)), None)
    root = _of_root(chain, partial(assignments.of_name, kind=name_of(type(named))))
    return [*found, root] if root is not None else found


def rebound_at(chain: Chain) -> Site | None:
    """Return the line that gives the name at the root its newest value, or an attribute after it.

    None without one: of a name that is only given its value once, that line tells nothing.
    """
    root = chain.root
    if root is None or not root.path or not frames.is_own(root.path):
        return None
    nearest_first = reversed([*_threes(chain)])
    sites = (_rebound_attribute(*three) or _rebound_cell(*three) for three in nearest_first)
    nearest = next((site for site in sites if site is not None), None)
    if nearest is not None or len(_below_root(chain)) < 2:
        return nearest or _of_root(chain, assignments.last_of_name)
    return _rebound_from_outside(chain) or _of_root(chain, assignments.last_of_owner)


def _below_root(chain: Chain) -> list[Any]:
    """Return the objects of a chain from the one that its root names."""
    of_module = chain.root is not None and chain.root.kind == "module"
    return chain.objects[1:] if of_module else chain.objects


def _rebound_from_outside(chain: Chain) -> Site | None:
    """Return where the function of the root gives its object an attribute: `model.last = out`."""
    owner, child, *following = _below_root(chain)
    _, attribute = _attribute(owner, child, following[:2])
    find = assignments.last_from_outside
    return _of_root(chain, lambda file, scope, name: find(file, scope, f"{name}.{attribute}"))


def _threes(chain: Chain) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Yield each object of a chain with the next one and, in a list, the two after that."""
    for index, (holder, child) in enumerate(pairwise(chain.objects)):
        yield holder, child, chain.objects[index + 2 : index + 4]


def _rebound_attribute(holder: Any, child: Any, following: list[Any]) -> Site | None:
    registered = trace.is_module_table(child, following)  # there before it is given a value
    find = partial(assignments.last_of_attribute, registered=registered)
    return _of_attribute(*_attribute(holder, child, following), find)


def _rebound_cell(holder: Any, child: Any, following: list[Any]) -> Site | None:
    """Return where a function gives a variable of the one around it a value: by `nonlocal`."""
    if type(holder) is not FunctionType or child is not holder.__closure__ or not following:
        return None
    code, name = holder.__code__, trace.name_of_cell(holder, following[0])
    return _site(code.co_filename, assignments.of_name, code.co_name, name)


def _of_root(chain: Chain, find: _Find) -> Site | None:
    """Return the line of those that give the name at the root a value which is asked for."""
    root = chain.root
    if root is None or root.kind == "class":
        return None
    if root.kind == "module":
        name = trace.key_of(*chain.objects[:2]) if len(chain.objects) > 1 else ""
        return _site(root.path, find, "", name)
    return _site(root.path, find, root.owner, root.name)


def _of_pair(holder: Any, child: Any, following: list[Any]) -> Site | None:
    if type(holder) is FunctionType or type(holder) is objects.LruCache:
        wrapped = holder.__dict__.get("__wrapped__", holder)
        return _of_definition(wrapped if type(wrapped) is FunctionType else holder)
    return _of_attribute(*_attribute(holder, child, following), assignments.of_attribute)


def _attribute(holder: Any, child: Any, following: list[Any]) -> tuple[type | None, str]:
    """Return the class and the attribute by which `holder` refers to what follows in the chain."""
    if following and trace.is_namespace_of(child, holder):
        owner = holder if issubclass(type(holder), type) else type(holder)
        within = pairwise([child, *following])
        named, value = list(within)[trace.is_module_table(child, following)]
        return owner, trace.key_of(named, value)
    if objects.length_reader(type(holder)) is not None:
        return None, ""
    return type(holder), attribute_holding(holder, child)


def _of_definition(function: Any) -> Site | None:
    code = function.__code__ if type(function) is FunctionType else None
    if code is None or not frames.is_own(code.co_filename):
        return None
    return Site(code.co_filename, code.co_firstlineno, code.co_name)


def _of_attribute(owner: type | None, name: str, find: _Find) -> Site | None:
    return None if owner is None else _site(path_of_class(owner), find, name_of(owner), name)


def _site(path: str, find: _Find, scope: str, name: str) -> Site | None:
    """Return the line of a user's file that gives a name its value in a function or class."""
    known = bool(path and name) and frames.is_own(path)
    line = find(file_of(path), scope, name) if known else None
    return Site(path, line, scope or "<module>") if line else None
