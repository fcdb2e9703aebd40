"""What grew inside the loop around the steps, judged as that loop goes on to its next turn."""

from __future__ import annotations

import pytest

from leakcheck.model import Notice, Reason
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.release import Hope, Release
from leakcheck.runtime.judgement.trend import fit
from leakcheck.runtime.readings.series import Series

STEPS = list(range(10, 70, 5))
GROWING = Reading(
    "tensors", STEPS, [8 * step for step in STEPS], fit(STEPS, [8 * s for s in STEPS])
)
TENSORS = ("tensors",)
STOPPED = Notice("bounded", Reason.of("grew-no-more", resources=TENSORS))
NOT_FROM_TURN_TO_TURN = Notice(
    "bounded", Reason.of("grew-no-more-between-turns", resources=TENSORS)
)
RELEASED = Notice("epoch-sawtooth", Reason.of("released-at-turns", resources=TENSORS))


def judged(*levels: tuple[int, int]) -> list[object]:
    release = Release([GROWING], 70)
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
    release = Release([GROWING, blocks], 70)

    (told,) = [release.judge(200, {"tensors": 90, "python.blocks": 5000})]

    assert told == Notice(
        "epoch-sawtooth", Reason.of("released-at-turns", resources=("tensors", "python.blocks"))
    )


@pytest.mark.parametrize(("step", "overdue"), [(1069, False), (1070, True)])
def test_the_end_of_a_long_loop_is_not_waited_for(step, overdue):
    assert Release([GROWING], 70).is_overdue(step) is overdue


def test_what_the_program_empties_when_the_loop_turns_is_waited_for_until_it_did():
    release = Release([GROWING], 70, Hope(50_000, emptied=True))

    assert not release.is_overdue(50_069)
    assert release.is_overdue(50_070)
    assert release.hoped_for
    release.judge(200, {"tensors": 1600})
    assert not release.hoped_for


def test_what_the_epochs_keep_a_fold_may_yet_release():
    release = Release([GROWING], 70)

    def turn(step: int, level: int, depth: int) -> object:
        return release.judge(step, {"tensors": level}, depth, outermost=2)

    assert [turn(200, 1600, 1), turn(400, 3200, 1)] == ["ask again", "ask again"]
    assert release.kept_at == 1
    assert turn(600, 90, 2) == RELEASED


def test_what_two_folds_keep_is_kept():
    release = Release([GROWING], 70)
    turns = [(600, 4800), (1200, 9600)]

    told = [release.judge(step, {"tensors": level}, 2, 2) for step, level in turns]

    assert told == ["ask again", "kept"]


def later(level) -> Series:
    series = Series()
    for step in range(10, 2000, 20):
        series.append(step, step / 10, {"tensors": level(step)})
    return series


@pytest.mark.parametrize(
    ("level", "gone"),
    [
        (lambda step: 8 * step, False),
        (lambda step: 8 * (step % 250), True),
        (lambda step: 8 * min(step, 600), True),
    ],
    ids=["goes on", "is emptied", "is full"],
)
def test_what_did_not_go_on_is_gone(level, gone):
    release = Release([GROWING], 70)

    told = release.gone([later(level)])

    assert (told is not None) == gone
    if told is not None:
        assert told.reason == Reason.of("grew-no-more-in-the-long-run", resources=TENSORS)


@pytest.mark.parametrize("reached", [True, False])
def test_a_turn_of_the_loop_decides_only_on_what_the_program_never_came_to(reached):
    release = Release([GROWING], 70, Hope(emptied=True, at_any_step=reached))

    release.judge(200, {"tensors": 1600})
    release.judge(400, {"tensors": 3200})

    assert release.hoped_for == reached


@pytest.mark.parametrize(("until", "ended"), [(150, False), (300, True)])
def test_what_gains_nothing_for_as_long_as_it_grew_has_ended_when_the_run_has(until, ended):
    series = Series()
    for step in range(70, until, 2):
        series.append(step, step / 10, {"tensors": 8 * min(step, 90)})
    release = Release([GROWING], 70)

    assert (release.gone([series], at_end=True) is not None) == ended
    assert release.gone([series]) is None  # there is more to wait for


def test_where_nothing_was_waited_for_nothing_is_gone():
    assert Release([], 0).gone([]) is None


def test_what_may_be_gone_is_looked_for_ever_more_rarely():
    release = Release([GROWING], 100, Hope(may_fill_up=True))
    due = [step for step in range(100, 100_000, 10) if release.is_due(step)]

    assert due[:5] == [150, 230, 350, 530, 800]
    assert len(due) == 16
    sure = Release([GROWING], 100)
    assert not any(map(sure.is_due, range(100, 9000)))
