from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

import leakcheck
from leakcheck.runtime.watched import _PLACES, MOST_PLACES, LeakWarning


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Leave no loop that is still listened to."""
    yield
    while _PLACES:
        _PLACES.popitem()[1].sentinel.stop()


def keep(kept: list[bytearray]) -> None:
    kept.append(bytearray(4000))


def test_watch_yields_every_item_and_warns_of_a_leak():
    kept: list[bytearray] = []

    def loop() -> None:
        for _ in leakcheck.watch(range(700)):
            keep(kept)

    with pytest.warns(LeakWarning, match="a step") as told:
        loop()

    assert len(kept) == 700
    assert [warning.filename for warning in told] == [__file__]


def test_watch_is_silent_on_a_clean_loop():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert sum(leakcheck.watch(range(300))) == sum(range(300))


def test_epochs_of_a_few_steps_are_one_loop():
    kept: list[bytearray] = []

    def train() -> None:
        for _ in range(40):
            for _ in leakcheck.watch(range(20)):
                keep(kept)

    with pytest.warns(LeakWarning) as told:
        train()

    assert len(told) == 1


def test_the_same_loop_may_be_gone_through_in_each_epoch():
    batches = leakcheck.watch([1, 2, 3])

    assert [sum(batches) for _ in range(4)] == [6, 6, 6, 6]


def test_a_loop_inside_itself_is_watched_on_its_own():
    def visit(depth: int) -> int:
        return 1 + sum(visit(depth - 1) for _ in leakcheck.watch(range(2)) if depth)

    assert visit(4) == 31


def test_length_and_all_else_are_those_of_the_loop():
    class Loader(list):  # type: ignore[type-arg]
        batch_size = 16

    loader = leakcheck.watch(Loader([1, 2]))

    assert (len(loader), bool(loader), loader.batch_size) == (2, True, 16)
    assert not leakcheck.watch([])
    with pytest.raises(TypeError):
        len(leakcheck.watch(iter([])))
    with pytest.raises(AttributeError):
        loader.nothing_of_the_kind  # noqa: B018


def test_it_is_an_iterator_where_one_is_wanted():
    numbers = leakcheck.watch(iter(range(5)))

    assert (next(numbers), next(numbers), list(numbers)) == (0, 1, [2, 3, 4])


def test_of_loops_that_are_over_only_the_last_few_are_remembered():
    before = len(gc.callbacks)
    for number in range(30):
        exec(f"for _ in leakcheck.watch(range(3)): {number}")

    assert len(gc.callbacks) - before <= MOST_PLACES


def test_what_an_epoch_gathers_and_releases_is_no_leak():
    def train() -> None:
        for _ in range(4):
            rows: list[bytearray] = []
            for _ in leakcheck.watch(range(300)):
                keep(rows)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train()


def test_what_grows_through_epochs_is_told_when_the_second_has_kept_it_too():
    kept: list[bytearray] = []

    def train() -> None:
        for epoch in range(4):
            for _ in leakcheck.watch(range(300)):
                keep(kept)
            epochs.append(epoch)

    epochs: list[int] = []
    with pytest.warns(LeakWarning) as told:
        train()

    assert len(told) == 1


def test_what_only_another_turn_could_have_released_is_told_at_exit(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import leakcheck\n"
        "kept = []\n"
        "for _ in range(1):\n"
        "    for _ in leakcheck.watch(range(700)):\n"
        "        kept.append(bytearray(4000))\n"
        "print('done')\n"
    )

    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120
    )

    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert "LeakWarning" in done.stderr
    assert "held by global `kept`" in done.stderr
