"""Limits that are set to something else, and hold for what grows beside it or in it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        (
            "if len(states) < 9:\n    states.append(s)\n    kept.append(x)\n",
            "program.py:1 (len(states) < 9)",
        ),
        (
            "if len(states) >= n: overwrite()\nelse:\n    states.append(s); kept.append(x)\n",
            "program.py:1 (len(states) >= n)",
        ),
    ],
)
def test_the_length_of_what_is_added_to_beside_it_limits_both(said, source, limit):
    assert said(source, line=3) == f"global `kept` grows, limited at {limit}"


@pytest.mark.parametrize(
    "source",
    [
        "if len(queue) > 9:\n    queue.pop()\n    kept.append(x)\n",
        "if len(queue) < 9:\n    queue.append(x)\nkept.append(x)\n",
    ],
)
def test_what_is_not_added_to_with_it_does_not(said, source):
    assert said(source, line=3) == ""


def test_an_object_that_is_made_anew_limits_what_it_holds(said):
    source = "memory.kept.append(x)\nif len(memory.other) == 9: memory = Memory()\n"
    holder = "attribute `Memory.kept`, from global `memory`"

    assert said(source, holder, ".kept") == (
        f"{holder} grows, limited at program.py:2 (len(memory.other) == 9)"
    )


def test_the_last_of_a_list_with_more_is_a_window(said):
    limit = "global `kept` grows, limited at program.py:1"

    assert said("kept = kept[-99:] + [x]\n") == f"{limit} (kept = kept[-99:] + [x])"
    assert said("kept = [*kept[-99:], x]\n") == f"{limit} (kept = [*kept[-99:], x])"
    assert said("kept = kept[:] + [x]\n") == ""


def test_the_line_that_adds_does_not_empty(said):
    source = "if i % 10 == 0:\n    figure = plt.figure()\n"

    assert said(source, "class attribute `Gcf.figs`", line=2) == ""


def test_a_counter_that_begins_anew_by_hand_is_a_limit(said):
    source = (
        "if self.at == len(self.kept): self.kept.append(x)\n"
        "self.at += 1\nif self.at >= n: self.at = 0\n"
    )

    assert said(source, "attribute `Ring.kept`, from global `ring`").endswith(
        "limited at program.py:1 (self.at == len(self.kept))"
    )


def test_what_is_taken_out_of_a_queue_once_enough_wait_is_limited(said):
    waiting = "kept.put(x)\nif now > lag:\n    old = kept.get()\n"
    asked = "kept.put(x)\nif now > lag:\n    old = kept.get(key)\n"

    assert said(waiting) == "global `kept` grows, limited at program.py:2 (now > lag)"
    assert said(asked) == ""


@pytest.mark.parametrize(
    "chosen",
    [
        "[row for row in kept if row.step > step - 2000]",
        "{key: row for key, row in kept.items() if row.step > step - 2000}",
        "deque((row for row in kept if step - row.step < 2000))",
        "{row for row in kept if now < row.until}",
    ],
)
def test_those_that_are_young_enough_are_a_window(said, chosen):
    told = said(f"kept.append(x)\nkept = {chosen}\n")

    assert told.startswith("global `kept` grows, limited at program.py:2 (kept = ")


@pytest.mark.parametrize(
    "chosen",
    [
        "[row for row in kept if row is not None]",
        "[row for row in rows if row.step > step - 2000]",
        "[row.loss for row in kept]",
    ],
)
def test_those_that_are_not_compared_are_none(said, chosen):
    assert said(f"kept.append(x)\nkept = {chosen}\n") == ""
