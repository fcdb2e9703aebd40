"""The length of the very container that grows, at step boundaries: an exact count of one thing."""

from __future__ import annotations

from leakcheck.runtime.judgement import patience
from leakcheck.runtime.readings.series import Series

CAME_DOWN = 0.5  # of its greatest length, for a container to have been emptied
EVEN = 0.8  # of its rate over all, in the last third of the steps
# elements in two thirds of the steps: half as many are due in the last, and by chance none comes in
# one of 150
GAINED = 10
REST_TIMES = 3  # the longest time between two additions: by then one as before has come
AFTER_TURN = 3  # additions after a loop turned, for growth to go on in its next turn
LITTLE = 0.1  # of what it gained, that it may have gained since, for it to stand
_LENGTH = "length"


class LengthCurve:
    """The lengths of one container, read now and then; a reading may fail, and ends it."""

    def __init__(self) -> None:
        self._series = Series(128, (_LENGTH,))
        self._first: tuple[int, int] | None = None  # the rows are thinned
        self.greatest = self.newest = 0  # of the lengths that were read
        self._peak = (0, 0)  # the last step at which it had become much longer, and how long
        self._risen_at = self._longest_rest = 0  # steps
        self._rises = self._turned_at = 0  # number of rises so far, and as a loop turned
        self._fell = self._lost = False

    def read(self, step: int, length: int | None) -> None:
        """Note the length at a step, None if the container was not found again."""
        if length is None:
            self._lost = True
            return
        if self._first is not None and length > self.newest:
            self._note_rise(step)
        self._fell |= length < self.newest
        self.greatest, self.newest = max(self.greatest, length), length
        self._first = self._first or (step, length)
        if length > self._peak[1] + LITTLE * (self._peak[1] - self._first[1]):
            self._peak = (step, length)
        if step > self._series.last_step:
            self._series.append(step, 0.0, {_LENGTH: length})

    def _note_rise(self, step: int) -> None:
        if self._rises:
            self._longest_rest = max(self._longest_rest, step - self._risen_at)
        self._rises, self._risen_at = self._rises + 1, step

    @property
    def came_down(self) -> bool:
        """Whether most of what it held is gone."""
        return not self._lost and self.is_down_at(self.newest)

    def is_down_at(self, length: int | None) -> bool:
        """Say whether at a length most of what it held would be gone."""
        return length is not None and length < CAME_DOWN * self.greatest

    @property
    def was_read(self) -> bool:
        """Whether its length was read, and each time it was asked for."""
        return self._first is not None and not self._lost

    @property
    def stands(self) -> bool:
        """Whether it was hardly longer in the last third of the steps than in those before.

        It must have gained enough before, more than once, and for longer than ever nothing since:
        what is added seldom may by chance not come for long, and what an epoch adds comes at once.
        """
        if self._lost or self._first is None or self._rises < 2:
            return False
        (begin, length), (step, peak) = self._first, self._peak
        rest = self._series.last_step - step
        late = 3 * rest >= self._series.last_step - begin
        long = rest > patience.TIMES_TO_END * self._longest_rest
        return peak - length >= GAINED and late and long

    def turned(self) -> None:
        """Note that a loop turned, with which additions may end, if many came in that turn."""
        if self._rises - self._turned_at >= GAINED:
            self._turned_at = self._rises

    @property
    def rests(self) -> bool:
        """Whether nothing is added any more, as far as is known, though often it was.

        Not for far longer than ever before, or not enough since a loop turned.
        """
        rest = self._series.last_step - self._risen_at
        since_turn = self._rises - self._turned_at
        over = rest > REST_TIMES * self._longest_rest
        enough = self._rises > GAINED and not self._lost
        return enough and (over or (self._turned_at > 0 and since_turn < AFTER_TURN))

    def rose_evenly(self, least_steps: int) -> bool:
        """Say whether it never fell in so many steps, and gained as much in the last third."""
        steps, lengths = self._series.column(_LENGTH)
        if self._lost or self._fell or self._first is None or steps[-1] <= self._first[0]:
            return False
        span, gained = steps[-1] - self._first[0], lengths[-1] - self._first[1]
        late = next(at for at, step in enumerate(steps) if 3 * (steps[-1] - step) <= span)
        if span < least_steps or steps[-1] == steps[late] or gained <= 0:
            return False
        rate = (lengths[-1] - lengths[late]) / (steps[-1] - steps[late])
        return rate * span >= EVEN * gained
