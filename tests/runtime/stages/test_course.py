"""Which stage follows which, in loops that do nothing but keep or release."""

from __future__ import annotations

import ctypes
import sys

import pytest

from leakcheck import Sentinel
from leakcheck.runtime.stages.attribution import Attribution

torch = pytest.importorskip("torch")
KEPT_BYTES = 128 << 10


def stages(steps, keep):
    """Return the stages that a loop went through, and its verdict."""
    seen = ["watching"]
    with Sentinel(steps=200) as sentinel:
        for _ in range(steps):
            keep(torch.zeros(KEPT_BYTES // 4))
            sentinel.step()
            if sentinel.state[1] != seen[-1]:
                seen.append(sentinel.state[1])
    return seen, sentinel.report().verdict


def test_what_grows_is_growing_to_the_end_however_much_it_comes_to():
    kept = []

    seen, verdict = stages(1500, kept.append)  # 187 MiB

    assert seen.index("growing") == len(seen) - 1
    assert verdict == "growing"


def test_what_keeps_its_size_is_steady_and_watched_on():
    kept = [None]

    def keep(tensor):
        kept[0] = tensor

    seen, verdict = stages(600, keep)

    assert (seen, verdict) == (["watching", "steady"], "steady")


@pytest.mark.parametrize(
    ("steps", "longer", "ends"),
    [
        (400, True, ("unclear", "new-shapes", ())),
        (1500, True, ("growing", "", ("native",))),
        (400, False, ("growing", "", ("native",))),
    ],
)
def test_memory_gained_with_new_shapes_may_be_a_librarys_until_that_must_be_full(
    steps, longer, ends
):
    """LSTMs and convolutions gain 177 KiB of oneDNN's memory for each new shape, very evenly."""
    allocate = ctypes.CDLL(None).malloc
    allocate.argtypes, allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
    with Sentinel(steps=200) as sentinel:
        for step in range(steps):
            _batch = torch.zeros(4, 10 + longer * step)
            allocate(KEPT_BYTES)
            sentinel.step()

    report = sentinel.report()
    code = report.reason.code if report.reason else ""
    assert (report.verdict, code, tuple(one.kind for one in report.suspects)) == ends


class Kept:
    """Tensors by their number: answers that nobody asks for, and samples for later."""

    def __init__(self):
        self.given_answers, self.kept_samples = {}, {}

    def answer(self, number):
        self.given_answers[number] = torch.zeros(8)

    def sample(self, number):
        self.kept_samples[number] = torch.zeros(8)

    def __getitem__(self, number):
        return self.kept_samples[number]


@pytest.mark.parametrize(
    ("keep", "ends"), [(Kept.answer, "growing"), (Kept.sample, "unclear")], ids=["answer", "sample"]
)
def test_a_loop_without_a_graph_that_has_no_end_leaks_what_nothing_else_reads(keep, ends):
    kept = Kept()
    with Sentinel() as sentinel:
        sentinel.restart("requests", trusted=False, waits="nothing", trains=False)
        for number in range(12_000):
            keep(kept, number)
            sentinel.step()
            if sentinel.certain:
                break
        verdict = sentinel.report().verdict

    assert verdict == ends


@pytest.mark.parametrize("part", ["__init__", "step", "close"])
def test_ctrl_c_in_a_window_leaves_what_was_known_before(monkeypatch, part):
    def interrupted(*args, **known):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Attribution, part, interrupted)
    kept, sentinel = [], Sentinel(steps=200)

    def train():
        with sentinel:
            for _ in range(1500):
                kept.append(torch.zeros(KEPT_BYTES // 4))
                sentinel.step()

    with pytest.raises(KeyboardInterrupt):
        train()

    reason = sentinel.report().reason
    assert reason is None or reason.code in ("unconfirmed", "unattributed")
    assert sys.gettrace() is None


def test_a_loop_that_ends_as_a_window_opens_is_unclear():
    kept = []
    with Sentinel(steps=200) as sentinel:
        while sentinel.state[1] != "attributing":
            kept.append([object() for _ in range(200)])
            sentinel.step()
        kept.append([object() for _ in range(200)])  # more objects than the window began with

    report = sentinel.report()
    assert (report.verdict, sentinel.broken) == ("unclear", "")
    assert report.reason is not None
    assert report.reason.code == "unattributed"


@pytest.mark.parametrize(("beside", "verdict"), [(0, "steady"), (3, "unclear")])
def test_what_fell_in_the_loop_before_may_fall_in_its_last_turn(beside, verdict):
    """`beside`: tensors a step that nothing takes away before the end."""
    kept, others = [], []
    with Sentinel(steps=200) as sentinel:
        for step in range(1, 2000):
            kept += [torch.zeros(8) for _ in range(4 if step <= 60 else 1)]
            others += [torch.zeros(8) for _ in range(beside)]
            sentinel.step()
            if sentinel.state[1] == "attributing":
                break
            if step == 60:
                kept.clear()
        assert sentinel.state[1] == "attributing"
        kept.clear()
        others.clear()

    assert (sentinel.report().verdict, sentinel.broken) == (verdict, "")
