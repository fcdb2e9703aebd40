"""May all that was confirmed to grow yet stop by itself? One table says for how long more to look.

The table of outlooks is asked about each thing that grows, by its uses; this one about all that
grows together, by what was measured: the first row that fits decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leakcheck.runtime.outlook import MEMO_STEPS, SHAPES_STEPS, UNSURE_STEPS

NEW_SHAPES, UNEVEN = "new-shapes", "uneven"
FOUND_BY_KEY_STEPS = 150  # as caches are: most are full after a turn
FOUND_STEPS = 2000  # if most often it is there: the lengths of a curriculum come slowly


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is known of all that grows.

    `of_shapes`: memory that a library may keep for each new shape, and such came; `uneven`: memory
    that grows as if they came, though none was seen; `mostly_found`: what is asked for is there
    most often; `memo`: it is kept only where it is new; `found`: who holds it;
    `on_host`: of the host's memory alone, without tensors; `held_by_nothing`: nothing known holds
    some of it; `may_fill`: it is found by key, and that it goes on was seen too briefly.
    """

    of_shapes: bool = False
    uneven: bool = False
    mostly_found: bool = False
    memo: bool = False
    found: bool = True
    on_host: bool = False
    held_by_nothing: bool = False
    may_fill: bool = False


@dataclass(frozen=True, slots=True)
class DoubtRow:
    """One row: its code, when it fits, and for how many steps growth must then go on.

    `settles`: a run that ends before that, and in which it went on so far, settles it.
    """

    code: str
    fits: Callable[[Doubt], bool]
    steps: int
    settles: bool = True


NO_DOUBT = DoubtRow("no-doubt", lambda d: True, 0)
DOUBTS = (
    DoubtRow(NEW_SHAPES, lambda d: d.of_shapes, SHAPES_STEPS, settles=False),
    DoubtRow(UNEVEN, lambda d: d.uneven, SHAPES_STEPS, settles=False),
    DoubtRow("mostly-found", lambda d: d.mostly_found, FOUND_STEPS, settles=False),
    DoubtRow("only-what-is-new", lambda d: d.memo, MEMO_STEPS),
    DoubtRow("nothing-found-on-host", lambda d: not d.found and d.on_host, MEMO_STEPS),
    DoubtRow("nothing-found", lambda d: not d.found, UNSURE_STEPS),
    DoubtRow("held-by-nothing-known", lambda d: d.held_by_nothing, UNSURE_STEPS),
    DoubtRow("found-by-key", lambda d: d.may_fill, FOUND_BY_KEY_STEPS),
    NO_DOUBT,
)


def row_for(doubt: Doubt) -> DoubtRow:
    """Return the row that decides for how many more steps growth must go on; 0 without doubt."""
    return next(row for row in DOUBTS if row.fits(doubt))
