"""Classes of installed libraries that hold what grows: a replay buffer limits itself there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from leakcheck.model import Holder, Suspect
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.kinds import (
    bases_of,
    defined_in,
    derives_from,
    module_of,
    types_named,
)

_INSTALLED = re.compile(r".*[\\/](?:site|dist)-packages[\\/]")
# a tensor of whatever class, fastai has its own; alone or in a container of nothing else
_NUMBERS = re.compile(r"(?:\w+ of )?\w+ \(scalar\) ")
# what torch's modules and optimizers hold, the program gave them
_NOT_LOOKED_AT = ("torch", "leakcheck")


def file_of(kind: type) -> str:
    """Return the file of a class of an installed library, "" for torch's and for the user's."""
    path = defined_in(kind)
    package = module_of(kind).partition(".")[0]
    known = package in _NOT_LOOKED_AT or frames.is_own(path)
    return path if path and not known and not frames.is_of_python(path) else ""


def shown(path: str) -> str:
    """Return the path of an installed file as it is told: from its package on."""
    entries = (str(entry) + os.sep for entry in sys.path if entry)
    around = max((each for each in entries if path.startswith(each)), key=len, default="")
    return _INSTALLED.sub("", path.removeprefix(around))


def logs_of_libraries(suspects: Sequence[Suspect], tolerance_bytes: int) -> tuple[Suspect, ...]:
    """Return those that installed classes keep of numbers as tensors without a graph, slowly.

    fastai's Recorder keeps the smoothed loss of each step: the user can do nothing about that.
    """
    return tuple(
        one
        for one in suspects
        if one.kind == "tensor"
        and _NUMBERS.match(one.what)
        and (one.bytes_per_step or 0.0) < tolerance_bytes
        and _is_held_by_library(one)
    )


def _is_held_by_library(suspect: Suspect) -> bool:
    held = suspect.holder
    named = types_named(held.owner) if held.kind == "attribute" else []
    # the program may have a class of a name that a library has too, as pytest's Collector
    kinds = [kind for kind in named if module_of(kind) == held.module]
    return any(file_of(base) for kind in kinds for base in bases_of(kind))


def is_optimizer_state(holder: Holder) -> bool:
    """Say whether it is the state of an optimizer, which has what parameters there are."""
    if holder.kind != "attribute" or holder.name != "state":
        return False
    base = getattr(sys.modules.get("torch.optim"), "Optimizer", None)
    return base is not None and any(derives_from(kind, base) for kind in types_named(holder.owner))
