"""self._tracks[track_id] = state in every call, and no track is ever dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import Expr, FileFacts, Use
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_PER_CALL = re.compile(
    r"(forward|__call__|step|update|run|process|predict|infer|__getitem__|observe|track|encode|"
    r"embed|render|execute|handle|evaluate|on_\w+)(_\w+)?$"
)
_FEW = re.compile(
    r"(^|_)(names?|devices?|dtypes?|cls|class|types?|configs?|layers?|modes?|kinds?|splits?|ranks?|"
    r"params?|modules?|models?|metrics?|attr|fields?|stages?|phases?|epochs?|tags?|groups?|idx|"
    r"index|i|j|k|prefix|suffix|label|category|dataset\w*|p|arch|path|file\w*)$"
)


class KeyedStateNeverDropped(Rule):
    """Dicts on self that calls fill under keys from the data, and nothing empties."""

    code = "LK315"
    summary = "state is kept for every key that was ever seen, and none is dropped"
    help = "drop what is no longer needed, or bound it"
    default = False
    words = ("self.",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the dicts of each class, and at local names for what is in them."""
        linked = module.facts
        for member in linked.classes:
            methods = _per_call(member)
            for name, first in _filled(linked.facts, methods):
                if _starts_as_dict(linked.facts, name) and _is_kept(linked, name):
                    yield self.hit(
                        first.at,
                        f"`self.{name}` keeps an entry for every key it ever saw",
                        confidence="medium",
                    )


def _per_call(member: Member) -> set[int]:
    """The methods that run again and again, and those of the class that they call."""
    facts, methods = member.file.facts, member.facts.methods
    found = {
        index
        for name, index in methods.items()
        if _PER_CALL.match(name) or "property" in facts.functions[index].decorators
    }
    todo = list(found)
    while todo:
        index = todo.pop()
        for call in facts.calls:
            called = methods.get(call.method)
            mine = call.function == index and call.spelled == f"self.{call.method}"
            if mine and called is not None and called not in found:
                found.add(called)
                todo.append(called)
    return found


def _filled(facts: FileFacts, methods: set[int]) -> Iterator[tuple[str, Use]]:
    """Yield the attributes that the methods fill under keys from the data, and where."""
    seen: set[str] = set()
    for use in (*facts.uses, *facts.local_uses):
        if use.function not in methods or use.role != "slot" or not _from_data(use.key):
            continue
        name = use.name if use.holder == "self" else _behind(facts, use)
        if name and name not in seen:
            seen.add(name)
            yield name, use


def _from_data(key: Expr | None) -> bool:
    if key is None or key.kind == "constant":
        return False
    return key.kind != "name" or not _FEW.search(key.text.rpartition(".")[2].lower())


def _behind(facts: FileFacts, use: Use) -> str:
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


def _starts_as_dict(facts: FileFacts, name: str) -> bool:
    values = [use.value for use in facts.uses_by_name.get(name, ()) if use.role == "bind"]
    return bool(values) and all(value is not None and value.kind == "empty" for value in values)


def _is_kept(linked: Linked, name: str) -> bool:
    """Whether nothing in the project drops an entry, measures the dict, or replaces it."""
    aliases: set[str] = set()
    for facts, use in linked.uses(name):
        first = sets_up(facts, use.function)
        if use.role in ("take", "measure") or (use.role == "bind" and not first):
            return False
        if use.role == "escape" and use.how != "bound":
            return False
        if use.role == "read" and use.how in ("move_to_end", "items"):
            return False
    for binding in linked.facts.bindings:
        if f".{name}" in binding.value.text or name in binding.value.names:
            aliases.add(binding.name)
    taken = {use.name for use in linked.facts.local_uses if use.role == "take"}
    return not aliases & taken and not linked.spelled_as_string(name)
