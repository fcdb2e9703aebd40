from __future__ import annotations

import pytest

pytest.importorskip("libcst")
from leakcheck.cure.sites import LeakSite, read
from leakcheck.cure.unreached_reads import (
    named_later,
    unreached_backward,
    unreached_read,
    unreached_tensor,
)
from leakcheck.model import Holder, Reason, Suspect

LOOP = "total = 0\nfor step in range(9):\n    loss.backward()\n    total += loss\n{after}\n"
METER = """\
class Meter:
    def update(self, loss):
        self.total += loss

    def learn(self):
        {learn}
"""


def site(text: str, line: int, name: str = "total") -> LeakSite:
    source = read(text)
    assert source is not None
    return LeakSite(source, line, Suspect("graph", "", holder=Holder("global", name)))


def test_a_backward_after_the_loop_may_need_the_graph():
    found = unreached_backward(site(LOOP.format(after="(total + 1).backward()"), 4), "train.py")

    assert found == Reason.of(
        "backward-later", code="(total + 1).backward()", path="train.py", line=5
    )


def test_a_backward_in_the_loop_was_run_and_compared():
    assert unreached_backward(site(LOOP.format(after="print(total)"), 4), "train.py") is None


def test_a_backward_in_another_function_counts_if_it_names_what_holds_the_leak():
    learns = METER.format(learn="self.total.backward()")
    other = METER.format(learn="self.loss.backward()")

    assert unreached_backward(site(learns, 3), "train.py") == Reason.of(
        "backward-later", code="self.total.backward()", path="train.py", line=6
    )
    assert unreached_backward(site(other, 3), "train.py") is None


def test_a_value_that_is_read_after_the_loop_may_be_missed():
    found = unreached_read(site(LOOP.format(after="print(total)"), 4), "train.py")

    assert found == Reason.of("read-later", code="print(total)", path="train.py", line=5)
    assert unreached_read(site(LOOP.format(after="print(loss)"), 4), "train.py") is None


def test_a_value_that_another_method_reads_may_be_missed():
    read_there = METER.format(learn="return self.total")

    assert unreached_read(site(read_there, 3), "train.py") == Reason.of(
        "read-later", code="return self.total", path="train.py", line=6
    )
    assert unreached_read(site(METER.format(learn="pass"), 3), "train.py") is None


@pytest.mark.parametrize(
    "after", ["print(total)", "print(f'{total / 9:.2f}')", "total + 1", "print(float(total) / 9)"]
)
def test_a_number_may_be_printed_and_computed_with(after):
    assert unreached_tensor(site(LOOP.format(after=after), 4), "train.py") is None


@pytest.mark.parametrize(
    "after",
    [
        "print(total.item())",
        "print((total / 9).item())",
        "m = torch.stack(total)",
        "mean = total / 9",
    ],
)
def test_what_may_be_used_as_a_tensor_is_not_to_be_a_number(after):
    found = unreached_tensor(site(LOOP.format(after=after), 4), "train.py")

    assert found == Reason.of("read-later", code=after, path="train.py", line=5)


def test_another_file_may_use_what_is_kept_after_its_loops():
    text = "for step in range(9):\n    print(meter.total)\n{after}\n"

    assert named_later(site(text.format(after="print(7)"), 0), "train.py") is None
    assert named_later(site(text.format(after="x = sum(meter.total)"), 0), "train.py") == Reason.of(
        "read-later", code="x = sum(meter.total)", path="train.py", line=3
    )
