"""Does an object hold tensors? Only then is it worth a line that it is freed late.

Silence when unsure: a class holds some when it is a module, or keeps what is made by torch, is
called a model, or is asked what only tensors and modules are.
"""

from __future__ import annotations

import re

from leakcheck.static.facts.link import Member
from leakcheck.static.facts.model import AttributeEffect

_MADE = re.compile(r"^(torch|numpy|cupy)\.(?!device|dtype|size|generator|cuda\.|random\.)", re.I)
_NAMED = re.compile(
    r"(^|_)(models?|modules?|net|network|backbone|encoder|decoder|tensors?|hidden|embeddings?|"
    r"activations?|features|gradients?|grads|logits|outputs|weights?|batch|batches)$"
)
# methods that only tensors, arrays and modules have
_ASKED = frozenset(
    (
        *("detach", "cpu", "cuda", "backward", "requires_grad_", "numel", "isfinite", "isnan"),
        *("unsqueeze", "permute", "contiguous", "argmax", "parameters", "named_parameters"),
    )
)


def holds_tensors(member: Member) -> bool:
    """Tell whether a class, or a base of it that the project defines, keeps tensors on self."""
    file = member.file
    return file.is_module(member) or any(map(_keeps_some, file.lineage(member)))


def _keeps_some(member: Member) -> bool:
    facts = member.file.facts
    methods = frozenset(index for index, _ in member.methods())
    asked = (call for name in _ASKED for call in facts.calls_by_name.get(name, ()))
    if any(call.spelled.startswith("self.") and call.function in methods for call in asked):
        return True
    return any(map(_is_heavy, member.binds()))


def _is_heavy(use: AttributeEffect) -> bool:
    value = use.value
    made = value is not None and value.kind == "call" and _MADE.match(value.text) is not None
    given = value.text.rpartition(".")[2] if value is not None and value.kind == "name" else ""
    return made or any(map(_NAMED.search, (use.name, given)))
