"""self.image = Image.open(path): lazy, so the file stays open until the pixels are read."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import Call, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.torch_api import words

_IN_MEMORY = Pattern(r"(?i)<streams>|^(<open_files>)$")


class ImageLeftUnloaded(Rule):
    """Images that are opened by path, and kept or handed out before they are loaded."""

    code = "LK609"
    summary = "an image is handed out unloaded, with its file open"
    help = "call image.load(), or open the file in a with block and read it"
    proof = "static only: what runs out are descriptors, not memory"
    words = ("Image.open(",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each image that is opened and bound."""
        facts = module.facts.facts
        for call in facts.calls_by_name.get("open", ()):
            opens = "PIL.Image.open" in (call.qualified, call.spelled) or (
                not call.qualified and call.spelled == "PILImage.open"
            )
            if opens and call.function >= 0 and _by_path(call) and _leaves(facts, call):
                yield self.hit(
                    call.at, "the file stays open until the pixels are read", confidence="medium"
                )


def _by_path(call: Call) -> bool:
    given = call.arguments[0].value if call.arguments else None
    return given is not None and given.kind == "name" and not _IN_MEMORY.search(given.text)


def _leaves(facts: FileFacts, call: Call) -> bool:
    """Whether it is bound on self or returned, and no method of it is called in between."""
    if call.fate != "bound" or not call.bound:
        return False
    calls = facts.calls_in(call.function)
    if any(_reads(other, call.bound) or _is_handed_to(other, call.bound) for other in calls):
        return False
    returned = any(value.text == call.bound for value in facts.functions[call.function].returns)
    return call.bound.startswith("self.") or returned


def _is_handed_to(call: Call, name: str) -> bool:
    """Whether a call is given the image, and may read it: not where it is merely kept."""
    given = any(a.value.kind == "name" and a.value.text == name for a in call.arguments)
    return given and call.method not in words("methods", "grow")


def _reads(call: Call, name: str) -> bool:
    """Whether a method of the image reads its pixels, or closes it."""
    mine = call.receiver is not None and call.receiver.text == name
    return mine and (call.method in _READS or not name.startswith("self."))


_READS = ("load", "convert", "copy", "close", "resize", "crop", "transpose", "thumbnail", "rotate")
