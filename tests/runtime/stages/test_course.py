"""Which stage follows which, in loops that do nothing but keep or release."""

from __future__ import annotations

import pytest

from leakcheck import Sentinel

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
