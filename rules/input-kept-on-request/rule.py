"""request.pixel_values = ...: the request lives on, and what was needed once lives with it."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import AttributeEffect
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_HOLDER = Pattern(r"(^|_)(<requests>)$")
_HEAVY = Pattern(r"<inputs>|(cache|features?|latents?)$")


class InputKeptOnRequest(Rule):
    """Tensors hung on a request or sample, which nothing takes off again."""

    code = "LK318"
    summary = "a tensor is hung on a request and stays there as long as the request"
    help = "set the attribute to None once it was used"
    default = False
    severity = "info"
    proof = "static only: how long a request lives is up to its caller"
    words = (".",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each heavy attribute that is given to somebody else's object."""
        linked = module.facts
        for use in linked.facts.uses:
            if _hangs(use) and _stays(linked, use.name):
                yield self.hit(
                    use.at, f"`{use.holder}.{use.name}` is never taken off", confidence="medium"
                )


def _hangs(use: AttributeEffect) -> bool:
    """Whether it gives what is computed, and by its name heavy, to somebody else's object."""
    heavy = use.role == "bind" and _HOLDER.search(use.holder) and _HEAVY.search(use.name)
    return bool(heavy) and use.value is not None and use.value.kind in _COMPUTED


_COMPUTED = ("call", "name", "item", "other")


def _stays(linked: Linked, name: str) -> bool:
    """Whether nothing sets the attribute to None, or deletes it, on any object but a new one."""
    for facts, use in linked.uses(name):
        method = facts.method_around(use.function)
        beginning = method is None or method.name in ("__init__", "__post_init__")
        emptied = use.value is not None and (use.value.text == "None" or use.value.kind == "empty")
        if not beginning and (use.role == "take" or (use.role == "bind" and emptied)):
            return False
    return True
