"""logger.removeHandler(handler): the logger lets go of it, and its file stays open."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.static.facts.model import MODULE, Call, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class HandlerLeftOpen(Rule):
    """Handlers of log files that are taken off their logger and not closed."""

    code = "LK612"
    summary = "a log handler is taken off its logger and its file stays open"
    help = "call the handler's close() as well"
    proof = "static only: CPython closes the file with its handler, so none stays open"
    words = ("removeHandler(",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each handler that is removed, in files that make handlers of files."""
        facts = module.facts.facts
        files = [call for call in facts.calls if _FILE_HANDLER.search(call.method) and call.bound]
        for call in facts.calls:
            given = call.argument("hdlr", 0) if call.method == "removeHandler" else None
            name = given.text if given is not None and given.kind == "name" else ""
            made = any(each.bound == name and _is_in_sight(each, call) for each in files)
            if made and not _closes(facts, name) and not _moves(facts, call, name):
                yield self.hit(call.at, f"`{name}` is removed, and not closed")


_FILE_HANDLER = re.compile(r"file_?handler$", re.IGNORECASE)  # also `add_file_handler(...)`


def _is_in_sight(made: Call, removed: Call) -> bool:
    """Whether the name that a handler is bound to means the same where it is removed."""
    return "." in made.bound or made.function in (MODULE, removed.function)


def _moves(facts: FileFacts, removed: Call, name: str) -> bool:
    """Whether another logger gets the handler afterwards."""
    behind = (call for call in facts.calls_in(removed.function) if call.at > removed.at)
    return any(
        call.method == "addHandler" and any(each.value.text == name for each in call.arguments)
        for call in behind
    )


def _closes(facts: FileFacts, name: str) -> bool:
    """Whether anything in the file closes it, or gives it to somebody who might."""
    for call in facts.calls:
        if call.receiver is not None and call.receiver.text == name and call.method == "close":
            return True
        given = any(argument.value.text == name for argument in call.arguments)
        if given and call.method not in ("removeHandler", "addHandler"):
            return True
    return False
