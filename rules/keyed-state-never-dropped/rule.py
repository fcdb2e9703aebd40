"""self._tracks[track_id] = state in every call, and no track is ever dropped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from leakcheck.source.words import Pattern, parts_of, words
from leakcheck.static.facts.keys import one_of_many, only_constants, parts_of_key, words_of
from leakcheck.static.facts.link import Member
from leakcheck.static.facts.model import AttributeEffect, Expr, FileFacts
from leakcheck.static.facts.nodes import dotted
from leakcheck.static.facts.numbers import is_number, names_number
from leakcheck.static.facts.runs import is_made_per_call, making_methods
from leakcheck.static.facts.text import is_text
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline, outline_nodes_of, outline_walk

_CACHE = re.compile(r"cache|memo|seen|history")
_CACHED = Pattern(r"(^|_)(<memoized_by>)$")
_MAKES = Pattern(r"(__\w+__|_*(<makes>|log)(_\w+)?)$")


class KeyedStateNeverDropped(Rule):
    """Dicts on self that calls fill under keys from the data, and nothing empties."""

    code = "LK315"
    summary = "state is kept for every key that was ever seen, and none is dropped"
    help = "drop what is no longer needed, or bound it"
    words = ("self.",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the dicts of each class, and at local names for what is in them."""
        linked = module.facts
        for member in linked.classes:
            filled = list(_filled(member))
            for name, first in filled if filled and not is_made_per_call(member) else ():
                if _starts_as_dict(member, name) and _is_kept(member, name):
                    shown = _matters(linked.facts, name, first)
                    shown = shown and not _is_of_a_few(module, member, first)
                    yield self.hit(
                        first.at,
                        f"`self.{name}` keeps an entry for every key it ever saw",
                        confidence="medium" if shown else "low",
                    )


def _filled(member: Member) -> Iterator[tuple[str, AttributeEffect]]:
    """Yield the attributes that methods fill under keys, and where first."""
    facts, making = member.file.facts, making_methods(member)
    seen: set[str] = set()
    for use in (*facts.uses, *facts.local_uses):
        if use.role != "slot" or use.how == "+=" or use.key is None or use.function in making:
            continue
        if is_number(facts, use.value, use.function) or names_number(use.name):
            continue
        method = facts.method_around(use.function)
        if method is None or method.owner != member.facts.name or _MAKES.match(method.name):
            continue
        name = use.name if use.holder == "self" else _behind(facts, use)
        many = bool(name) and name not in seen and _from_data(name, use.key)
        if many and not only_constants(member.file, use.function, use.key):
            seen.add(name)
            yield name, use


def _from_data(name: str, key: Expr) -> bool:
    """Whether the key is of arbitrarily many, by its name or by what the dict is called."""
    cached = any(_CACHED.search(word) and not _is_setting(word) for word in words_of(key))
    return one_of_many(key) or (cached and _CACHE.search(name.lower()) is not None)


def _matters(facts: FileFacts, name: str, use: AttributeEffect) -> bool:
    """Whether it is more than text that is kept, and the key, or a part of it, is of many."""
    if use.key is None or is_text(facts, use):
        return False
    return any(map(one_of_many, (use.key, *parts_of_key(facts, use.key, use.function))))


def _is_of_a_few(module: Module, member: Member, use: AttributeEffect) -> bool:
    """Whether a key is a length, `length, _ = x.shape`, or a key of what the object keeps anyway.

    `for job in self.jobs`, where nothing drops a job: that dict has as many.
    """
    tree = outline(module.source)
    if tree is None or use.key is None or use.key.kind != "name" or use.function < 0:
        return False
    name, span = use.key.text, module.facts.facts.functions[use.function].at
    nodes: list[ast.Assign | ast.For] = outline_nodes_of(tree, ast.Assign, ast.For)
    for node in nodes:
        if not span.line <= node.lineno <= use.at.line:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = (n for t in targets for n in outline_walk(t) if isinstance(n, ast.Name))
        if not any(n.id == name and isinstance(n.ctx, ast.Store) for n in named):
            continue
        if isinstance(node, ast.Assign):
            return _is_length(node.value)
        walked = node.iter
        while isinstance(walked, ast.Call):  # `list(self.jobs.items())`
            inner = walked.func.value if isinstance(walked.func, ast.Attribute) else None
            walked = inner or next(iter(walked.args), ast.Constant(None))
        holder, _, other = dotted(walked).rpartition(".")
        uses = member.file.uses_of(other, member) if holder == "self" else ()
        return holder == "self" and all(each.role != "take" for _, each in uses)
    return False


def _is_length(value: ast.expr) -> bool:
    """Whether a value is the shape of something, an item of it, or a length."""
    match value:
        case ast.Subscript(value=inner):
            return _is_length(inner)
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size")):
            return True
        case ast.Tuple(elts=elements):
            return all(map(_is_length, elements))
    return isinstance(value, ast.Call) and dotted(value.func) == "len"


def _is_setting(word: str) -> bool:
    """Whether a key is of a few by what it is the key of: `lang_key`, not `image_key`."""
    last = _CACHED.search(word)
    about = parts_of(word[: last.start()] if last is not None else word)
    return not about.isdisjoint(words("said", "configures"))


def _behind(facts: FileFacts, use: AttributeEffect) -> str:
    """Name the attribute that a local name stands for, or for an item of."""
    if use.holder:
        return ""
    for binding in facts.bindings:
        if binding.name == use.name and binding.function == use.function:
            parts = binding.value.text.split(".")
            direct = binding.value.kind in ("name", "item") and len(parts) == 2
            through = binding.value.kind == "call" and parts[2:] in (["setdefault"], ["get"])
            if parts[0] == "self" and (direct or through):
                return parts[1]
    return ""


def _starts_as_dict(member: Member, name: str) -> bool:
    uses = member.file.uses_of(name, member)
    values = [use.value for _, use in uses if use.role == "bind"]
    return bool(values) and all(
        value is not None and value.kind == "empty" and value.text not in _HAVE_PLACES
        for value in values
    )


_HAVE_PLACES = ("list", "deque", "tuple")  # where an index is a place that is there already


def _is_kept(member: Member, name: str) -> bool:
    """Whether nothing in the project drops an entry, measures the dict, or replaces it."""
    linked = member.file
    for facts, use in linked.uses_of(name, member):
        anew = use.how == "[]" and not use.guarded and use.value and use.value.kind == "empty"
        if use.role in ("take", "measure") or anew:
            return False
        if use.role == "bind" and use.function >= 0:
            method = facts.method_around(use.function)
            if method is None or method.name not in ("__init__", "__post_init__", "__new__"):
                return False
        if use.role == "escape" and use.how != "bound":
            return False
        if use.role == "read" and use.how in ("move_to_end", "items", "values"):
            return False
    aliases = {
        binding.name
        for binding in linked.facts.bindings
        if f".{name}" in binding.value.text or name in binding.value.names
    }
    taken = {use.name for use in linked.facts.local_uses if use.role == "take"}
    return not aliases & taken and not linked.spelled_as_string(name)
