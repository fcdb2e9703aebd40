"""At which moments are requests that overlap like steps? When about as many are in flight.

What a request holds while it runs is no growth, and how many run at once changes. So the heap is
looked at when as many are in flight as at the looks before: none, if that is the case as every
fourth request ends; else a number that is about as common, as under a load that never lets up.
"""

from __future__ import annotations

from collections import Counter

LEARNT_FROM = 64  # requests, of which a level is learnt
HELD_FOR = 256  # requests, usually
OFTEN = 0.25  # of the requests, as which end so many are in flight
SELDOM = 0.1  # or fewer: the load has changed
STARVED = 256  # requests in a row without such a moment, after which the end of each must do


class QuietMoments:
    """Says of each request that ends whether what is left can be compared with before.

    `held_for`: requests, after each of which it is asked whether that number still comes.
    """

    def __init__(self, held_for: int = HELD_FOR) -> None:
        self.lowest = self.highest = 0  # in flight at a look
        self._seen = Counter[int]()  # in flight, as each of the newest requests ended
        self._due, self._held_for = LEARNT_FROM, held_for  # of them
        self._is_new = True
        self._passed = 0  # requests ended since the last such moment

    def comes(self, in_flight: int) -> bool:
        """Note that a request ended and so many go on; say whether to look now."""
        self._seen[in_flight] += 1
        within = self.lowest <= in_flight <= self.highest
        self._passed = 0 if within else self._passed + 1
        return within or self._passed > STARVED

    @property
    def is_learnt(self) -> bool:
        """Whether enough requests were seen to learn the number from."""
        return self._seen.total() >= self._due

    def learn(self) -> bool:
        """Take the numbers in flight that are common now, if those before are not; say whether so.

        What was seen at others does not compare with it then.
        """
        quiet = self._share(self.lowest, self.highest)
        changes = quiet < (OFTEN if self._is_new else SELDOM)
        if changes:
            self.lowest, self.highest = self._common()
        self._seen.clear()
        self._due, self._is_new = self._held_for, False
        return changes

    def _common(self) -> tuple[int, int]:
        """Return the narrowest range that was there often enough, the lowest of several."""
        known = sorted(self._seen)
        ranges = [(low, high) for low in known for high in known if low <= high]
        often = (each for each in ranges if self._share(*each) >= OFTEN)
        return min(often, key=lambda each: (each[1] - each[0], each[0]))

    def _share(self, lowest: int, highest: int) -> float:
        within = sum(n for level, n in self._seen.items() if lowest <= level <= highest)
        return within / self._seen.total()
