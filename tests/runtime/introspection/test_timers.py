"""What an event loop lets go of in time, asked of the live timers alone."""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from time import monotonic

import pytest

from leakcheck.runtime.introspection.timers import is_due_in_time

DAY_S = 24 * 3600.0


def timers(*due_s: float, cancelled: bool = False) -> list[TimerHandle]:
    loop = asyncio.new_event_loop()
    made = [TimerHandle(monotonic() + after_s, print, (), loop) for after_s in due_s]
    for timer in made if cancelled else ():
        timer._cancelled = True
    loop.close()
    return made


@pytest.mark.parametrize(
    ("container", "due"),
    [
        (timers(*[5.0] * 20), True),
        (timers(*[DAY_S] * 20, cancelled=True), True),
        (timers(*[5.0] * 19, DAY_S), True),
        (timers(*[5.0] * 15, *[DAY_S] * 5), False),
        (timers(*[DAY_S] * 20), False),
        ([*timers(*[5.0] * 5), *range(20)], False),
        (dict.fromkeys(timers(5.0)), False),
        ([], False),
    ],
    ids=["soon", "cancelled", "but one", "but a quarter", "in a day", "beside", "dict", "empty"],
)
def test_timers_that_are_due_soon_or_cancelled_go_in_time(container, due):
    assert is_due_in_time(container) is due


def test_a_timer_of_the_program_s_own_kind_is_not_asked():
    class Timer(TimerHandle):
        def __eq__(self, other):
            raise AssertionError("the program's code ran")

        when = cancelled = __lt__ = __eq__
        __hash__ = TimerHandle.__hash__

    loop = asyncio.new_event_loop()
    kept = [Timer(monotonic(), print, (), loop) for _ in range(20)]
    loop.close()

    assert not is_due_in_time(kept)
