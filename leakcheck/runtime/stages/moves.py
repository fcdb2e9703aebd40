"""What a stage says comes next: a value, so that only the machine knows all stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leakcheck.runtime.judgement.confirmation_length import again, confirmation
from leakcheck.runtime.stages.episode import NEW_EPISODE, Attributed, Episode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leakcheck.runtime.judgement.confirmation import Confirmation
    from leakcheck.runtime.judgement.judge import Reading
    from leakcheck.runtime.stages.growth import EstablishedGrowth
    from leakcheck.runtime.stages.loop import LoopCourse


@dataclass(frozen=True, slots=True)
class WatchAgain:
    """Nothing is suspected any more; what was read until the step `after` counts no more.

    `closely`: whatever grows, however slowly, is to be confirmed.
    """

    after: int
    closely: bool = False


@dataclass(frozen=True, slots=True)
class Confirm:
    """Something seems to grow: is it so?"""

    confirmation: Confirmation
    episode: Episode


@dataclass(frozen=True, slots=True)
class Attribute:
    """This was confirmed to grow: who holds it? The window is to see so many steps at least."""

    grown: Sequence[Reading]
    episode: Episode
    least_steps: int = 0


@dataclass(frozen=True, slots=True)
class Await:
    """It is known who holds it, or that nobody can tell: may it yet be released?"""

    found: Attributed
    episode: Episode


@dataclass(frozen=True, slots=True)
class Settle:
    """The verdict will not change: it grows, or the loop is steady."""

    growth: EstablishedGrowth | None


Move = WatchAgain | Confirm | Attribute | Await | Settle


def confirm(
    found: list[Reading],
    loop: LoopCourse,
    step: int,
    length: int = 0,
    episode: Episode = NEW_EPISODE,
) -> Confirm:
    """Confirm what seems to grow, over `length` steps if that is known."""
    planned = confirmation(found, loop.watch.slow, step, loop.tolerance_bytes, length)
    return Confirm(planned, episode)


def confirm_for_longer(episode: Episode, step: int, steps: int, held: Attributed) -> Confirm:
    """Confirm once more what has grown, over so many steps."""
    longer = again(list(episode.grown), step, steps)
    doubted = replace(episode, grown=(), soon=False, doubted=True, held=held)
    return Confirm(longer, doubted)
