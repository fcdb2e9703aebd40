"""Holders as the tests write them: in the words that reports tell them by."""

from __future__ import annotations

import re

from leakcheck.model import Holder

_FORMS = (
    (r"local `(?P<name>.+?)`(?: in (?P<function>\w+)\(\))?", "local"),
    (r"global `(?:(?P<owner>[\w.]+)\.)?(?P<name>\w+)`", "global"),
    (r"class attribute `(?:(?P<owner>[\w.]+)\.)?(?P<name>\w+)`", "class attribute"),
    (r"(?:attribute )?`(?:(?P<owner>[\w.]+)\.)?(?P<name>\w+)`", "attribute"),
    (r"closure cell `(?P<name>\w+)` of (?P<function>\w+)\(\)", "closure"),
    (r"default argument `(?P<name>\w+)` of (?P<function>\w+)\(\)", "default"),
    (r"context variable `(?P<name>\w+)`", "context variable"),
    (r"lru_cache of (?P<function>[\w ]+)\(\)", "memo"),
    (r"suspended (?P<function>\w+)\(\)", "suspended"),
    (r"functions registered with `(?P<name>\w+)`", "exits"),
    (r"hook (?P<name>[\w<>]+)\(\) of a Node of the autograd graph", "graph hook"),
    (r"a `(?P<owner>\w+)` object", "inside"),
)


def held_by(sentence: str) -> Holder:
    """Return the holder that a sentence tells, an unknown one for ""."""
    outside = re.fullmatch(r"held outside Python(?:: (.*))?", sentence)
    if outside is not None:
        known = "" if "no Python object" in sentence else outside[1] or ""
        return Holder("outside", root=held_by(known) if known else None)
    own, _, root = sentence.partition(", from ")
    for form, kind in _FORMS:
        if (found := re.fullmatch(form, own)) is not None:
            parts = {key: part or "" for key, part in found.groupdict().items()}
            return Holder(kind, **parts, root=held_by(root) if root else None)
    assert not sentence, f"no holder is told as {sentence!r}"
    return Holder()
