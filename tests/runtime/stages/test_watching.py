"""After what seemed to grow was garbage the watch looks again before it calls a loop steady."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from leakcheck.runtime.stages.moves import Settle
from leakcheck.runtime.stages.watching import Watching


def loop(*, steady_step: int, saw_enough: bool = True) -> SimpleNamespace:
    span = SimpleNamespace(after=0, steady_step=steady_step)
    watch = SimpleNamespace(next_checkpoint=lambda step: step + 100)
    looks = SimpleNamespace(saw_enough=saw_enough)
    return SimpleNamespace(span=span, watch=watch, looks=looks, trusted=True, went_on=tuple)


@pytest.mark.parametrize("saw_enough", [True, False])
def test_where_this_step_was_looked_at_it_may_be_steady_at_once(saw_enough):
    watching = Watching(loop(steady_step=300, saw_enough=saw_enough), 10, looked=True)

    assert watching.enter(300) == (Settle(None) if saw_enough else None)


def test_where_it_was_looked_at_many_steps_ago_it_is_looked_at_again():
    shared = loop(steady_step=300)

    assert Watching(shared, 10).enter(400) is None
    assert (shared.span.after, shared.next_checkpoint) == (10, 500)
