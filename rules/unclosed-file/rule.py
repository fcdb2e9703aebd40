"""json.dump(report, open(path, "w")): a file that only the garbage collector closes."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.model import Call, FileFacts
from leakcheck.static.facts.resources import abandoned, acquired, ends
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api


class UnclosedFile(Rule):
    """Files that a function opens for itself and leaves to be closed when they are dropped."""

    code = "LK611"
    summary = "a file is opened and never closed, so it stays open for as long as it is referred to"
    help = "open it in a with block"
    default = False
    severity = "info"
    proof = "static only: CPython closes a file that is dropped, so what stays open varies"
    words = ("open(", "File(", "resource_stream(", "open_text(", "open_binary(")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each file that is opened."""
        facts = module.facts.facts
        for call in facts.calls:
            name = acquired(module.facts, call, api("files"))
            if not name:
                continue
            used_at_once = call.fate == "chained" and call.at not in _closed(facts)
            if used_at_once or (call.fate == "argument" and _only_read(facts, call, name)):
                yield self.hit(call.at, "nobody can close this file")
            elif call.fate == "bound" and abandoned(
                module.facts, call, ends("owned")[name], tuple(api("file-readers"))
            ):
                yield self.hit(call.at, f"`{call.bound}` is never closed", confidence="medium")


def _closed(facts: FileFacts) -> set[object]:
    """Return where a file is opened and closed in one breath: `open(path, "w").close()`."""
    closing = [call for call in facts.calls if call.method in ("close", "__enter__")]
    return {
        call.at
        for call in facts.calls
        if any((c.at.line, c.at.column) == (call.at.line, call.at.column) for c in closing)
    }


def _only_read(facts: FileFacts, call: Call, name: str) -> bool:
    """Whether it is given to a function that reads it or writes it, and does not keep it."""
    return any(
        other.qualified in api("file-readers")
        and other.at.line <= call.at.line <= call.at.end_line <= other.at.end_line
        and any(a.value.kind == "call" and a.value.text == name for a in other.arguments)
        for other in facts.calls_in(call.function)
    )
