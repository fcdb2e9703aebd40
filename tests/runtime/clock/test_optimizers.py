"""Which of a program's optimizers is counted, and which of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from leakcheck.runtime.clock.optimizers import an_optimizer_waits
from leakcheck.runtime.clock.steps import StepClock
from leakcheck.runtime.sentinel import Sentinel


class Optimizer:
    """Raises when it is compared or hashed: a foreign object may."""

    __slots__ = ("__weakref__",)

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError

    __hash__ = None  # type: ignore[assignment]


def counted_steps(stepping: Iterable[object]) -> list[bool]:
    """Return for each step of an optimizer whether it counted."""
    sentinel = Sentinel()
    counted: list[None] = []
    clock = StepClock(sentinel, lambda: counted.append(None))
    steps = []
    for optimizer in stepping:
        before = len(counted)
        clock.optimizer_stepped(optimizer)
        steps.append(len(counted) > before)
    sentinel.stop()
    return steps


def test_each_of_a_row_of_optimizers_that_are_all_kept_counts_from_its_first_step():
    kept = [Optimizer() for _ in range(50)]

    assert counted_steps(each for each in kept for _ in range(10)) == [True] * 500


def test_of_a_gan_s_two_optimizers_one_counts_after_the_first_round():
    critic, generator = Optimizer(), Optimizer()

    assert counted_steps([critic, generator] * 20) == [True, True] + [True, False] * 19


def test_of_three_that_alternate_one_counts_after_the_first_round():
    first, second, third = Optimizer(), Optimizer(), Optimizer()

    counted = counted_steps([first, second, third] * 20)

    assert counted == [True] * 3 + [True, False, False] * 19


def test_of_twenty_that_alternate_one_counts_after_a_few_rounds():
    agents = [Optimizer() for _ in range(20)]

    assert counted_steps(agents * 10)[60:] == ([True] + [False] * 19) * 7


def test_five_steps_of_a_critic_and_then_one_of_the_generator_are_five_steps():
    critic, generator = Optimizer(), Optimizer()

    counted = counted_steps([*[critic] * 5, generator] * 20)

    assert counted == [True] * 6 + [*[True] * 5, False] * 19


def test_one_step_of_the_generator_and_then_five_of_a_critic_are_one_step():
    critic, generator = Optimizer(), Optimizer()

    counted = counted_steps([generator, *[critic] * 5] * 20)

    assert counted == [True] * 6 + [True, *[False] * 5] * 19


def test_pairs_of_optimizers_that_are_replaced_and_kept_count_once_a_round():
    pairs = [[Optimizer(), Optimizer()] for _ in range(10)]

    counted = counted_steps(each for pair in pairs for each in pair * 10)

    assert counted == ([True, True] + [True, False] * 9) * 10


def test_new_optimizers_within_each_round_of_one_that_stays_do_not_count_in_the_end():
    outer = Optimizer()
    inner = [Optimizer() for _ in range(10)]

    counted = counted_steps(each for one in inner for each in (outer, one, one, one))

    assert counted == [True] * 8 + [True, False, False, False] * 8


def test_a_companion_takes_over_when_the_one_that_counts_does_not_step_any_more():
    counting, companion = Optimizer(), Optimizer()
    both = [counting, companion, counting]

    counted = counted_steps([*both, *[companion] * 300, counting, companion])

    assert counted == [True] * 3 + [False] * 199 + [True] * 101 + [False, True]


def test_a_companion_takes_over_at_once_when_the_one_that_counts_is_gone():
    companion = Optimizer()

    def stepping() -> Iterator[object]:
        counting = Optimizer()
        yield from (counting, companion, counting, companion)
        del counting
        yield companion

    assert counted_steps(stepping()) == [True, True, True, False, True]


def test_only_the_very_first_optimizer_restarts_the_watch(monkeypatch):
    restarts = []
    monkeypatch.setattr(Sentinel, "restart", lambda *_, **__: restarts.append(None))

    counted_steps([Optimizer() for _ in range(3)] * 3)

    assert len(restarts) == 1


@pytest.mark.parametrize("broken", [{"params": ["no tensor"]}, {}, None])
def test_an_optimizer_whose_groups_the_program_broke_disturbs_nobody(broken):
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    optimizer.param_groups.append(broken)

    assert an_optimizer_waits() is False


@pytest.mark.parametrize(
    ("order", "begun"),
    [
        ("a" * 9 + "b" * 9 + "c" * 9, 2),
        ("ab" * 9, 1),  # of a GAN
        ("aaab" * 9 + "bbba" * 9, 1),
        ("a" * 9, 0),
    ],
)
def test_training_begins_anew_with_each_optimizer_that_was_never_seen(monkeypatch, order, begun):
    noted: list[Sentinel] = []
    monkeypatch.setattr(Sentinel, "begins_anew", lambda sentinel: noted.append(sentinel))
    optimizers = {name: Optimizer() for name in "abc"}

    counted_steps(optimizers[name] for name in order)

    assert len(noted) == begun
