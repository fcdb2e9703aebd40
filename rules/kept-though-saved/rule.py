"""torch.save(shard, path); shards.append(shard): it is on disk, and in memory as well."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static.facts.model import AttributeEffect, Call, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted

_SAVES = {"torch.save": 0, "pickle.dump": 0, "joblib.dump": 0, "numpy.save": 1}


class KeptThoughSaved(Rule):
    """Objects that a loop writes to files of their own, and collects in a list all the same."""

    code = "LK319"
    summary = "what a loop writes to disk piece by piece is kept in a list as well"
    help = "keep the path, or what is wanted of it later"
    words = ("torch.save(", "pickle.dump(", "joblib.dump(", ".save(")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each loop both saves and appends."""
        facts = module.facts.facts
        for call in facts.calls:
            position = _SAVES.get(call.qualified)
            if position is None or not call.loops or len(call.arguments) <= position:
                continue
            saved = call.arguments[position].value
            for use in facts.local_uses if saved.kind == "name" else ():
                collected = _collects(use, call, saved.text) and not _is_result(facts, use)
                collected = collected and not _is_taken_out(module, use, saved.text)
                if collected and _made_in_loop(facts, call, saved.text):
                    yield self.hit(
                        use.at,
                        f"`{saved.text}` is saved, and stays in `{use.name}`",
                        confidence="medium",
                    )


def _collects(use: AttributeEffect, call: Call, name: str) -> bool:
    """Whether the same loop appends the very object."""
    here = use.function == call.function and use.loops == call.loops and use.how == "append"
    return here and use.value is not None and use.value.text == name


def _is_result(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the function is called for the list, and the files are its copy.

    One that makes shards is called for the files.
    """
    function = facts.function(use.function)
    if function is None or "shard" in function.name:
        return False
    return any(use.name in (value.text, *value.plain) for value in function.returns)


def _is_taken_out(module: Module, use: AttributeEffect, name: str) -> bool:
    """Whether a loop over the list, behind, has what is saved: it was there as a whole before."""
    return any(
        dotted(loop.iter) == use.name
        and dotted(loop.target) == name
        and module.location(loop).line > use.at.line
        for loop in module.nodes(cst.For)
    )


def _made_in_loop(facts: FileFacts, call: Call, name: str) -> bool:
    """Whether each turn computes another one, and none is a path or a number."""
    made = [c for c in facts.calls_in(call.function) if c.bound == name]
    return bool(made) and all(each.loops for each in made)
