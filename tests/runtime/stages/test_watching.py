"""Where nothing is suspected any more the watch goes on with its looks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from leakcheck.runtime.readings.watching import Watch
from leakcheck.runtime.stages.watching import Watching


def next_look(step: int, after: int) -> int:
    """Return when a loop that counts as steady at step 1,000 is looked at again."""
    span = SimpleNamespace(after=0, steady_step=1000)
    shared = SimpleNamespace(span=span, watch=Watch(), next_checkpoint=0)

    assert Watching(shared, after).enter(step) is None
    assert shared.span.after == after
    return shared.next_checkpoint


@pytest.mark.parametrize(("step", "after", "at"), [(60, 0, 67), (420, 10, 560), (1100, 10, 1265)])
def test_it_is_looked_at_again_soon_enough_not_to_put_the_verdict_off(step, after, at):
    assert next_look(step, after) == at
