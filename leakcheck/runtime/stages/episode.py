"""One growth from when it is suspected until it is settled, as values that stages hand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leakcheck.model import Holder, Suspect
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.doubts import NO_DOUBT, DoubtRow
from leakcheck.runtime.judgement.confirmation import Confirmation
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.prospects import NO_PROSPECTS, Prospects


@dataclass(frozen=True, slots=True)
class Attributed:
    """What an attribution window found: who holds what grows, and what may become of it."""

    suspects: tuple[Suspect, ...] = ()
    prospects: Prospects = NO_PROSPECTS  # of the suspects
    way_by_holder: Mapping[Holder, Way] = field(default_factory=dict)  # to the containers
    per_training: bool = False  # it comes once in each
    may_fill_up: bool = False  # as a cache does
    doubt: DoubtRow = NO_DOUBT  # for which it is looked at for longer
    beside_bytes: float | None = None  # a step, gained by what is no leak beside the suspects


NOTHING_FOUND = Attributed()


@dataclass(frozen=True, slots=True)
class Episode:
    """What was done about one growth so far.

    `grown`: what was confirmed, at the step `grown_step`; `soon`: it grows too evenly to wait as
    usual; `doubted`: it is looked at for longer, because of what was found before, `held`;
    `looked_late`: also after what may take it away was waited for.
    """

    confirmation: Confirmation | None = None
    grown: tuple[Reading, ...] = ()
    grown_step: int = 0
    soon: bool = False
    doubted: bool = False
    held: Attributed = NOTHING_FOUND
    looked_late: bool = False


NEW_EPISODE = Episode()
