"""Which functions add entries to a container that grows, and which remove them, by the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leakcheck.model import Entries, Suspect
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.source.uses import Use


def entries_of(suspects: Sequence[Suspect], requests_per_step: float) -> tuple[Entries, ...]:
    """Return who adds to and who removes from each container that gains entries."""
    sources = Sources({})
    found = (_entries(sources, one, requests_per_step) for one in suspects)
    return tuple(each for each in found if each is not None)


def _entries(sources: Sources, suspect: Suspect, requests_per_step: float) -> Entries | None:
    held = suspect.holder.named
    if suspect.objects_per_step is None or not held.name or not suspect.locations:
        return None
    uses = sources.uses_of(suspect)
    added = _functions(sources, (use for use in uses if use.role == "add"))
    removed = _functions(sources, (use for use in uses if use.role in ("take", "cut")))
    kept = suspect.objects_per_step / requests_per_step
    return Entries(suspect.holder, added, removed, kept) if added or removed else None


def _functions(sources: Sources, uses: Iterable[Use]) -> tuple[str, ...]:
    functions = (sources.method_at(use) for use in uses)
    return tuple(dict.fromkeys(each.name if each else "<module>" for each in functions))
