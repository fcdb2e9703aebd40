"""Which of the places that repeat make graphs: what trains does."""

from __future__ import annotations

from leakcheck.runtime.introspection.graph import sequence_number

FEWEST_THAT_MADE = 7  # iterations


class GraphsMade:
    """Which loops make autograd Nodes in every other iteration of theirs, or more often.

    autograd numbers its Nodes: an iteration made some if the number has risen since the one before.
    """

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._made: dict[int, int] = {}

    def note(self, loop: int) -> None:
        """Note that an iteration of `loop` begins (0.3 us)."""
        newest = sequence_number()
        self._made[loop] = self._made.get(loop, 0) + (newest > self._newest.get(loop, newest))
        self._newest[loop] = newest
        self._seen[loop] = self._seen.get(loop, 0) + 1

    def made_by(self, loop: int) -> bool:
        """Say whether at least half of the iterations of `loop` made Nodes, and several did."""
        made = self._made.get(loop, 0)
        return made >= FEWEST_THAT_MADE and 2 * made >= self._seen[loop] - 1
