"""Established growth: who holds it, and what became of it while its release is awaited."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from leakcheck.model import Holder, Notice, Suspect
from leakcheck.runtime import outlook
from leakcheck.runtime.judgement import patience
from leakcheck.runtime.judgement.harmless import are_below, gained_bytes, plain_bytes
from leakcheck.runtime.judgement.release import Hope, Release
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY
from leakcheck.runtime.stages.episode import Attributed, Episode
from leakcheck.runtime.stages.lengths import Lengths

Suspects = tuple[Suspect, ...]


class EstablishedGrowth:
    """What grows from `step` on is measured; `waits`: for the end of a loop around the steps.

    `tolerance_bytes`: what plain objects may gain a step without being a leak.
    """

    def __init__(
        self,
        found: Attributed,
        episode: Episode,
        step: int,
        *,
        waits: bool,
        tolerance_bytes: int = 0,
    ) -> None:
        self.found, self.episode = found, episode
        self._tolerance_bytes = tolerance_bytes
        self.waits_long = waits and found.prospects.waits_long
        # a statement that took nothing from it yet is to have some more chances
        self._disputed = bool(found.prospects.in_vain)
        self.release = Release(episode.grown, step, self._hope)
        self.lengths = Lengths(found)

    @property
    def _hope(self) -> Hope:
        """What may yet take away what grows, and for how long that is waited for.

        The table says for how long at most; the turn of the loop is waited for in any case.
        """
        prospects = self.found.prospects
        removal = prospects.removal
        doubt = self.found.may_fill_up or not self.found.suspects
        emptied = self.waits_long or removal is not None
        steps = outlook.ELSEWHERE_STEPS if doubt else outlook.LOOP_STEPS
        if emptied:
            wanted = prospects.wait_steps
            longest = wanted if self.waits_long else min(wanted, outlook.ELSEWHERE_STEPS)
            steps = min(steps, wanted) if prospects.took_nothing else max(steps, longest)
        at_any_step = removal is not None and removal.reached
        return Hope(steps, emptied, at_any_step, doubt, self.found.per_training)

    def waits_for_graph(self, step: int) -> bool:
        """Whether a line may yet take a graph that nobody means to keep."""
        return step - self.release.since_step < self.found.prospects.graph_wait_steps

    @property
    def emptied_from(self) -> dict[Holder, int]:
        """Who holds what was measured to have been emptied, and how long it had been before."""
        return {
            holder: one.greatest for holder, one in self.lengths.curves.items() if one.came_down
        }

    def as_before(self, emptied_from: Mapping[Holder, int]) -> list[Holder]:
        """Return who holds about no more than that from which it was emptied before."""
        most = {holder: outlook.PASSED * length for holder, length in emptied_from.items()}
        known = ((h, one) for h, one in self.lengths.curves.items() if h in most and one.was_read)
        return [h for h, one in known if one.newest <= most[h]]

    @property
    def full(self) -> list[Holder]:
        """Who holds what was measured to gain no more."""
        return [holder for holder, curve in self.lengths.curves.items() if curve.stands]

    def turned(self) -> None:
        """Note that a loop around the steps turned."""
        for curve in self.lengths.curves.values():
            curve.turned()

    def leave_out_hoped(self, step: int) -> tuple[Notice, ...] | None:
        """Leave out, beside a leak, what may yet come to an end; say what that is.

        None if all the rest is tolerated: then it is waited for.
        """
        waited_steps = step - self.release.since_step
        hoped = self.found.prospects.hoped(waited_steps)
        holders = [one.suspect.holder for one in hoped.each]
        if self.is_little_without(holders):
            return None
        return hoped.told_of_hoped if self.goes_on_without(holders) else ()

    @property
    def is_unheld(self) -> bool:
        """Whether no container is known that holds what grew: there may be none any more."""
        return not any(one.holder in self.found.way_by_holder for one in self.found.suspects)

    def is_gone(self, newest: Mapping[str, int]) -> bool:
        """Say whether all that was counted exactly is gone: no more is there than at first."""
        counted = [one for one in self.episode.grown if one.resource in COUNTED_EXACTLY]
        gone = (newest.get(one.resource, one.values[-1]) <= one.values[0] for one in counted)
        return bool(counted) and all(gone)

    @property
    def is_disputed(self) -> bool:
        """Whether a statement that took nothing from it yet is to have some more chances."""
        known = self._disputed and bool(self.lengths.curves)
        return known and not self.rose_for(patience.DISPUTED_STEPS)

    def settle_dispute(self) -> None:
        """Leave out, beside a leak, what did not grow evenly: something did remove from it."""
        vain = set(self.found.prospects.in_vain) if self._disputed else set()
        curves = ((holder, self.lengths.curves.get(holder)) for holder in vain)
        wavers = [h for h, one in curves if one is None or not one.rose_evenly(0)]
        if wavers and self.goes_on_without(wavers):
            self._disputed = bool(self.found.prospects.in_vain)

    def goes_on_without(self, holders: Collection[Holder]) -> bool:
        """Leave out what these hold, if another is a leak whatever becomes of it; say whether."""
        left = self.found.prospects.without(holders)
        goes_on = left.leaks and not self.is_little_without(holders)
        if goes_on and holders:
            self._leave_out(holders)
        return goes_on

    def waits_on_without(self, holders: Collection[Holder]) -> bool:
        """Leave out what these hold, if the length of another rose all the while; say whether."""
        rest = (one for holder, one in self.lengths.curves.items() if holder not in holders)
        rose = any(one.rose_evenly(patience.EVEN_STEPS) for one in rest)
        waits_on = rose and not self.is_little_without(holders)
        if waits_on:
            self._leave_out(holders)
        return waits_on

    def _leave_out(self, holders: Collection[Holder]) -> None:
        left = self.found.prospects.without(holders)
        suspects, out = self._parted(holders)
        beside_bytes = gained_bytes(out) + (self.found.beside_bytes or 0.0)
        found = replace(self.found, prospects=left, suspects=suspects)
        self.found = replace(found, beside_bytes=beside_bytes)
        self.lengths.leave_out(holders)

    def is_little_without(self, holders: Collection[Holder]) -> bool:
        """Say whether what others hold are plain objects, and so few that they are tolerated."""
        left, out = self._parted(holders)
        beside_bytes = plain_bytes(self.episode.grown) - gained_bytes(out)
        little = are_below(left, self._tolerance_bytes) and beside_bytes < self._tolerance_bytes
        return bool(left) and bool(out) and little

    def _parted(self, holders: Collection[Holder]) -> tuple[Suspects, Suspects]:
        """Return the suspects that others hold, and those that these do."""
        suspects = self.found.suspects
        left = tuple(one for one in suspects if one.holder not in holders)
        return left, tuple(one for one in suspects if one.holder in holders)

    def rose_for(self, steps: int) -> bool:
        """Say whether each of the containers was measured to grow evenly for so many steps."""
        curves = self.lengths.curves.values()
        return bool(curves) and all(curve.rose_evenly(steps) for curve in curves)
