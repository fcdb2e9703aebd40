"""The lines that make a holder: the assignment of a root's name, an attribute, a function's def."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from leakcheck.runtime import assignments, frames, objects, trace
from leakcheck.runtime.frames import Site
from leakcheck.runtime.holders import Chain, Root, path_of_class


def held_at(chain: Chain) -> list[Site]:
    """Return the user's lines that make the holders of a chain, the nearest to the leak first."""
    pairs = list(zip(chain.objects, chain.objects[1:], strict=False))
    sites = [
        _of_pair(holder, child, chain.objects[index + 2 : index + 3])
        for index, (holder, child) in enumerate(pairs)
    ]
    found = [site for site in reversed(sites) if site is not None]
    root = _of_root(chain.root, chain.objects) if chain.root is not None else None
    return [*found, root] if root is not None else found


def rebound_at(chain: Chain) -> Site | None:
    """Return the line that gives the name at the root its newest value, None without one."""
    root = chain.root
    if root is None or root.kind == "class" or not frames.is_own(root.path):
        return None
    name, function = root.name, root.owner
    if root.kind == "module":
        direct = len(chain.objects) == 2
        name, function = trace.key_of(*chain.objects) if direct else "", ""
    line = assignments.last_of_name(root.path, function, name) if name else None
    return Site(root.path, line, function or "<module>") if line else None


def _of_root(root: Root, chain: list[Any]) -> Site | None:
    name, function = root.name, root.owner
    if root.kind == "module":
        name, function = trace.key_of(chain[0], chain[1]) if len(chain) > 1 else "", ""
    if root.kind == "class" or not frames.is_own(root.path):
        return None
    line = assignments.of_name(root.path, function, name)
    return Site(root.path, line, function or "<module>") if line else None


def _of_pair(holder: Any, child: Any, following: list[Any]) -> Site | None:
    if type(holder) is FunctionType or type(holder) is objects.LruCache:
        function = getattr(holder, "__wrapped__", holder)
        return _of_definition(function)
    if following and trace.is_namespace_of(child, holder):
        owner = holder if issubclass(type(holder), type) else type(holder)
        return _of_attribute(owner, trace.key_of(child, following[0]))
    name = trace.attribute_of(holder, child) if objects.length_reader(type(holder)) is None else ""
    return _of_attribute(type(holder), name) if name else None


def _of_definition(function: Any) -> Site | None:
    code = getattr(function, "__code__", None)
    if code is None or not frames.is_own(code.co_filename):
        return None
    return Site(code.co_filename, code.co_firstlineno, code.co_name)


def _of_attribute(owner: type, name: str) -> Site | None:
    path = path_of_class(owner)
    if not path or not frames.is_own(path):
        return None
    line = assignments.of_attribute(path, owner.__name__, name)
    return Site(path, line, owner.__name__) if line else None
