"""What grew inside the loop around the steps, judged as that loop goes on to its next turn."""

from __future__ import annotations

import pytest

from leakcheck.model import Notice
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.release import Release
from leakcheck.runtime.judgement.trend import fit

STEPS = list(range(10, 70, 5))
GROWING = Reading(
    "tensors", STEPS, [8 * step for step in STEPS], fit(STEPS, [8 * s for s in STEPS])
)
STOPPED = Notice("bounded", "tensors had grown, and grew no more")
NOT_FROM_TURN_TO_TURN = Notice(
    "bounded",
    "tensors had grown, and grew no more from one turn of the enclosing loop to the next",
)
RELEASED = Notice(
    "epoch-sawtooth", "tensors grow inside the enclosing loop and are released at its end"
)


def judged(*levels: tuple[int, int]) -> list[object]:
    release = Release([GROWING], 70, 1.0, may_fill_up=False)
    return [release.judge(step, {"tensors": level}) for step, level in levels]


def test_what_is_gone_was_released():
    assert judged((200, 90)) == [RELEASED]


def test_what_is_all_there_is_asked_again_after_another_turn():
    assert judged((200, 1600), (400, 3200)) == ["ask again", "kept"]


def test_what_is_kept_until_the_next_turn_has_as_much_stopped():
    assert judged((200, 1600), (400, 1610)) == ["ask again", NOT_FROM_TURN_TO_TURN]


def test_what_comes_with_much_else_is_asked_again():
    assert judged((200, 16_000), (400, 16_010)) == ["ask again", NOT_FROM_TURN_TO_TURN]


def test_what_is_there_in_part_stopped_growing():
    assert judged((400, 1200)) == [STOPPED]


def test_blocks_that_the_end_of_an_epoch_leaves_behind_do_not_count_beside_tensors():
    blocks = Reading("python.blocks", STEPS, STEPS, fit(STEPS, STEPS))
    release = Release([GROWING, blocks], 70, 1.0, may_fill_up=False)

    (told,) = [release.judge(200, {"tensors": 90, "python.blocks": 5000})]

    assert told == Notice(
        "epoch-sawtooth",
        "tensors, python.blocks grow inside the enclosing loop and are released at its end",
    )


@pytest.mark.parametrize(
    ("step", "elapsed_s", "overdue"), [(1070, 11.0, True), (1069, 11.0, False), (1070, 10.9, False)]
)
def test_the_end_of_a_long_loop_is_not_waited_for(step, elapsed_s, overdue):
    release = Release([GROWING], 70, 1.0, may_fill_up=False)

    assert release.is_overdue(step, elapsed_s) is overdue


def test_what_the_program_empties_when_the_loop_turns_is_waited_for_until_it_did():
    release = Release([GROWING], 70, 1.0, may_fill_up=False)
    release.emptied = True

    assert not release.is_overdue(1070, 11.0)
    assert release.is_overdue(50_070, 501.0)
    assert release.hoped_for
    release.judge(200, {"tensors": 1600})
    assert not release.hoped_for
