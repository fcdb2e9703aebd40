"""Does an object hold tensors? Only then is it worth a line that it is freed late.

Silence when unsure: a class holds some when it is a module, or keeps what is made by torch, is
called a model, or is asked what only tensors and modules are.
"""

from __future__ import annotations

import re

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Member
from leakcheck.static.facts.model import AttributeEffect

_MADE = re.compile(
    r"^(torch|numpy|cupy)\.(?!device|dtype|size|generator|cuda\.|random\.|nn\.\w+loss$)", re.I
)
_NAMED = Pattern(r"^(?!_*(<flags>)_)(\w*_)?(<heavy>)$")
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


def works_on_device(member: Member) -> bool:
    """Tell whether a class, or a base of it, works on a CUDA device, or is torch's by a base.

    A data pipe of torch's is none: what passes through it is handed on.
    """
    calls = (
        call
        for kin in member.file.lineage(member)
        for index, _ in kin.methods()
        for call in kin.file.facts.calls_in(index)
    )
    if any(c.qualified.startswith("torch.cuda.") or c.method in ("cpu", "cuda") for c in calls):
        return True
    bases = member.file.foreign_bases(member)
    return any(b.startswith("torch.") and not b.startswith("torch.utils.data") for b in bases)


def _keeps_some(member: Member) -> bool:
    facts = member.file.facts
    methods = frozenset(index for index, _ in member.methods())
    asked = (call for name in _ASKED for call in facts.calls_by_name.get(name, ()))
    if any(call.spelled.startswith("self.") and call.function in methods for call in asked):
        return True
    if any(map(_is_heavy, member.binds())):
        return True
    unpacked = (c for c in facts.calls if c.unpacked and c.function in methods)
    return any(
        _MADE.match(call.qualified) and any(name.startswith("self.") for name in call.unpacked)
        for call in unpacked
    )


def _is_heavy(use: AttributeEffect) -> bool:
    value = use.value
    made = value is not None and value.kind == "call" and _MADE.match(value.text) is not None
    given = value.text.rpartition(".")[2] if value is not None and value.kind == "name" else ""
    return made or any(map(_NAMED.search, (use.name, given)))
