"""Objects that stand for child processes, threads or open files are told as these, each leak once.

An object's kind is "object" where it is found; that the processes grow is known elsewhere. Who
reads the report minds the processes, and who holds the objects that keep them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from leakcheck.model import Kind, Suspect
from leakcheck.runtime.advice import fix_for

# a child has pipes, and a pool of children has threads: processes come first
STANDS_FOR: dict[Kind, re.Pattern[str]] = {
    "processes": re.compile(r"\w*(Popen|Process|ProcessPoolExecutor|Pool)"),
    "threads": re.compile(r"\w*(Thread|Timer|ThreadPoolExecutor|ThreadPool)"),
    "descriptors": re.compile(
        r"FileIO|TextIOWrapper|Buffered\w+|mmap|\w*([sS]ocket|File|FileWrapper|Writer|Connection)"
    ),
}
MOST_PER_CHILD = 4  # descriptors or threads that belong to one
AS_MANY = 0.1  # apart, for two rates to be one leak's


def as_counted(suspects: Sequence[Suspect], rates: Mapping[str, float]) -> tuple[Suspect, ...]:
    """Give suspects the kind of what they stand for, if that grows; `rates`: what does."""
    told = [_named(suspect, rates) for suspect in suspects]
    for held in [one for one in told if one.holder and one.kind in STANDS_FOR]:
        # a line that adds to the counter, and objects that are held: the same, seen in two ways
        lead = next((one for one in told if one.kind == held.kind and not one.holder), None)
        if lead is not None:
            told[told.index(lead)] = replace(
                held,
                locations=tuple(dict.fromkeys((*lead.locations, *held.locations))),
                objects_per_step=lead.objects_per_step,
            )
            told.remove(held)
    return tuple(told)


def _named(suspect: Suspect, rates: Mapping[str, float]) -> Suspect:
    held = suspect.kind == "object" and bool(suspect.holder)
    name = suspect.what.split()[-1] if suspect.what else ""
    for kind, names in STANDS_FOR.items():
        if held and kind in rates and names.fullmatch(name):
            return replace(suspect, kind=kind, fix=fix_for("", kind, scalar=False))
    if suspect.kind in ("threads", "descriptors") and not suspect.holder:
        return _as_children(suspect, rates)
    return suspect


def _as_children(suspect: Suspect, rates: Mapping[str, float]) -> Suspect:
    """Tell the processes instead, if the descriptors or threads are as many as theirs would be."""
    children = rates.get("processes", 0.0)
    of_each = rates.get(suspect.kind, 0.0) / children if children else 0.0
    if not 1 <= round(of_each) <= MOST_PER_CHILD or abs(of_each - round(of_each)) > AS_MANY:
        return suspect
    return replace(
        suspect,
        kind="processes",
        what="child processes that are started and never end",
        objects_per_step=children,
        fix=fix_for("", "processes", scalar=False),
    )
