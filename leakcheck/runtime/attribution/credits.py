"""Which lines add to a container that grows, and what else do the same lines add to?"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from leakcheck.runtime.attribution import other_threads
from leakcheck.runtime.attribution.following import Retention
from leakcheck.runtime.attribution.growth import Grower
from leakcheck.runtime.attribution.lines import culprit
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.readings.compiled import GRAPHS


class Credits:
    """What each line of a window's tracer is `credited` with, by the id of the container."""

    def __init__(self, credited: Mapping[str, Counter[Site]], growers: Sequence[Grower]) -> None:
        self._credited = credited
        self._growers = growers  # a list of the containers themselves would be another holder
        self._grower_ids = {id(grower.container) for grower in growers}
        self._codes_elsewhere = frames.own_codes_elsewhere()

    def of(self, container: Any, found: Retention) -> Counter[Site]:
        """Return the lines that add to a container, of which `found` tells who holds it."""
        lines = self._added_to(container) or self._added_beside(container, found)
        codes, told = self._codes_elsewhere, found.told
        return other_threads.checked(lines, told.holder, codes, told.edges) if codes else lines

    def taken_from(self, container: Any) -> frozenset[tuple[str, int]]:
        """Return the lines, by shown path, that made a container shorter in all."""
        changed = self._added_to(container).items()
        return frozenset((frames.shown(at.path), at.line) for at, change in changed if change < 0)

    def compiles(self, lines: Counter[Site]) -> bool:
        """Say whether torch.compile made graphs, and in each of these lines, if any are known."""
        graphs = self._credited.get(GRAPHS, Counter())
        return bool(graphs) and lines.keys() <= graphs.keys()

    def culprit(self, resource: str, expected: float = 0.0) -> Counter[Site]:
        """Return the line to which a resource's growth is due; none where other threads add too."""
        if self._codes_elsewhere:
            return Counter()
        return culprit(self._credited.get(resource, Counter()), expected)

    @property
    def resources(self) -> list[str]:
        """What lines were credited with, beside the containers that were seen to grow."""
        return [key for key in self._credited if not key.isdecimal()]

    def added_alike(self, found: Retention) -> set[int]:
        """Return the ids of what is in containers that the same line adds to: a list of each hook.

        To search for who holds each takes longer than there is.
        """
        known, kind = found.lines.keys(), type(found.grower)
        alike = (each.container for each in self._growers if type(each.container) is kind)
        added = [each for each in alike if known and self._added_to(each).keys() == known]
        return set(map(id, gc.get_referents(*added)))

    def _added_to(self, container: Any) -> Counter[Site]:
        return self._credited.get(str(id(container)), Counter())

    def _added_beside(self, container: Any, found: Retention) -> Counter[Site]:
        """Return the lines that add to another in the same container: few of fifty are watched."""
        at = (i for i, owner in enumerate(found.owners) if owner is container)
        above = found.owners[: next(at, len(found.owners))][-1:]
        if not above or id(above[0]) not in found.fixed | self._grower_ids:
            return Counter()
        beside = set(map(id, gc.get_referents(above[0])))
        alike = (one.container for one in self._growers if type(one.container) is type(container))
        lines = (self._added_to(other) for other in alike if id(other) in beside)
        return next(filter(None, lines), Counter())
