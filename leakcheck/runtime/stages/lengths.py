"""How long the containers are that are known to hold what grows, while it is looked at on."""

from __future__ import annotations

from collections.abc import Collection

from leakcheck.model import Holder
from leakcheck.runtime.judgement.curve import LengthCurve
from leakcheck.runtime.stages.episode import Attributed


class Lengths:
    """The length curve of each container to which a way is known, by holder."""

    def __init__(self, found: Attributed) -> None:
        self._ways = found.way_by_holder
        known = (one.holder for one in found.suspects if one.holder in self._ways)
        self.curves = {holder: LengthCurve() for holder in known}

    def measure(self, step: int, *, at_end: bool) -> None:
        """Read each length.

        At the end the function whose local led there may have returned: what is known stays so.
        """
        for holder, curve in self.curves.items():
            length = self._ways[holder].length()
            if length is not None or not at_end:
                curve.read(step, length)

    def released(self) -> list[Holder]:
        """Return who holds little of it, or nothing, now that the steps are over."""
        ends = {holder: self._ways[holder].length_at_end() for holder in self.curves}
        return [h for h, end in ends.items() if self.curves[h].is_down_at(end)]

    def leave_out(self, holders: Collection[Holder]) -> None:
        """Measure these no more."""
        self.curves = {h: one for h, one in self.curves.items() if h not in holders}

    @property
    def rest(self) -> bool:
        """Whether all that is measured gains nothing now, though often it did: it may be over."""
        return bool(self.curves) and all(one.rests for one in self.curves.values())
