"""self._fd = open(...) in acquire(): the second call loses the first descriptor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import AttributeEffect, Call, Expr, FileFacts, FunctionFacts
from leakcheck.static.facts.resources import enders, kept_open, openers
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_AGAIN = Pattern(
    r"(_*(<again>|on_epoch_\w+|on_train_epoch_\w+)(_\w+)?|__(call|getitem|next|iter)__)$"
)


class OverwrittenWhileOpen(Rule):
    """Resources on self that a method opens anew without a look at the one before."""

    code = "LK606"
    summary = "a resource is opened into an attribute whose previous one is still open"
    help = "close the old one first, or refuse a second call"
    proof = "static only: CPython closes the file that is dropped, so one stays open"
    words = openers("owned", "ends")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what the methods that are called again and again bind on self."""
        linked, facts = module.facts, module.facts.facts
        for use in facts.uses:
            method = facts.method_around(use.function)
            if method is None or not _AGAIN.match(method.name) or not _opens(facts, use):
                continue
            if _is_for_base(linked, method) or _is_run_by_thread(facts, method):
                continue
            if not use.guarded and not _looked_at(facts, use) and not _ends_here(facts, use):
                yield self.hit(
                    use.at, f"`self.{use.name}` may still be open here", confidence="medium"
                )


def _is_for_base(linked: Linked, method: FunctionFacts) -> bool:
    """Whether only a base that is not of the project calls it, which knows what is open."""
    owner = linked.class_called(method.owner)
    if owner is None or not method.name.startswith("_") or method.name.endswith("__"):
        return False
    called = next(linked.calls_of(method.name), None) is not None
    return not called and bool(linked.foreign_bases(owner) - {"object", "abc.ABC"})


def _is_run_by_thread(facts: FileFacts, method: FunctionFacts) -> bool:
    """Whether a thread is made to run it, which it does once: `Thread(target=self._process)`."""
    targets = (call.argument("target") for call in facts.calls_by_name.get("Thread", ()))
    return Expr("name", f"self.{method.name}") in targets


def _opens(facts: FileFacts, use: AttributeEffect) -> bool:
    return (
        use.role == "bind" and use.holder == "self" and bool(kept_open(facts, use, "owned", "ends"))
    )


def _ends_here(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the same function ends it on every way out: `finally: self.session.close()`."""
    name = f"self.{use.name}"
    ends = enders(kept_open(facts, use, "owned", "ends"))
    last = (c for c in facts.calls_in(use.function) if c.handled == "finally" and c.at > use.at)
    return any(
        call.method in ends if call.spelled == f"{name}.{call.method}" else _closes(call, name)
        for call in last
    )


def _closes(call: Call, name: str) -> bool:
    """`os.close(self.file)`."""
    return call.method == "close" and any(given.value.text == name for given in call.arguments)


def _looked_at(facts: FileFacts, use: AttributeEffect) -> bool:
    """Whether the function reads the attribute, or ends everything, before it opens it anew."""
    return any(
        other.function == use.function and other.name == use.name and other.at < use.at
        for other in facts.uses
    ) or any(
        call.at < use.at and re.search(r"close|release|stop|shutdown|end|clean", call.method)
        for call in facts.calls_in(use.function)
    )
