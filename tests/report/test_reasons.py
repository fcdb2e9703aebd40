"""The words for reasons: each code has a sentence, and fields are written as their units ask."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import leakcheck
from leakcheck.model import Notice, Reason
from leakcheck.report.reasons import SAID, said, told

HELD = Reason.of("held-at", holder="global `kept`", path="train.py", line=9)
SENTENCES = {
    "amounts have the unit that the resource has": (
        Reason.of("climbs", resource="tensors", rate=Reason.of("rate", per_step=2, unit="tensors")),
        "tensors: still climbing 2 tensors a step, though not evenly",
    ),
    "bytes are written as people read them": (
        Reason.of("crept", gained_bytes=96 * (1 << 20)),
        "host.rss crept up by 96.0 MiB in all, and nothing that counts did",
    ),
    "what is not known is left out": (
        Reason.of("climbs", resource="tensors", rate=None),
        "tensors: still climbing, though not evenly",
    ),
    "memory grows": (
        Reason.of("no-graph", resources=("host.rss",), held=HELD),
        "host.rss grows, held by global `kept` (train.py:9), in a loop that makes no autograd "
        "graph: a leak, or data gathered",
    ),
    "what is counted grow": (
        Reason.of("loop-may-release", resources=("graph.nodes",), held=None),
        "graph.nodes grow; the loop around the steps may still release it",
    ),
    "several grow": (
        Reason.of("loop-may-release", resources=("host.heap", "host.rss"), held=None),
        "host.heap, host.rss grow; the loop around the steps may still release it",
    ),
    "a reason within a reason is a part of its sentence": (
        Reason.of(
            "may-be-taken",
            resources=("tensors",),
            held=HELD,
            removal=Reason.of("emptied-at-a-turn", code="kept.clear()", path="train.py", line=20),
        ),
        "tensors grow, held by global `kept` (train.py:9); `kept.clear()` (train.py:20) "
        "empties it when the loop turns",
    ),
    "lists have the separator that the sentence asks for": (
        Reason.of("cut-off", resources=("host.heap", "python.blocks")),
        "host.heap and python.blocks grew, and the run was cut off before that was confirmed",
    ),
    "large numbers of steps have commas": (
        Reason.of(
            "gathered-by-loop",
            holder="global `kept`",
            gained_bytes=3000,
            steps=12_000,
            code="plot(kept)",
            path="train.py",
            line=30,
        ),
        "global `kept` gathered 2.9 KiB in 12,000 steps, and `plot(kept)` (train.py:30) uses it "
        "after the loop: no leak",
    ),
}


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_a_reason_is_said_in_one_sentence(reason, sentence):
    assert said(reason) == sentence


def test_no_reason_says_nothing():
    assert said(None) == ""


def test_a_notice_of_a_moment_says_when():
    stopped = Reason.of("grew-no-more", resources=("tensors",))

    assert told(Notice("bounded", stopped)) == "tensors had grown, and grew no more"
    assert told(Notice("bounded", stopped, 1757)) == (
        "at step 1,757: tensors had grown, and grew no more"
    )


def test_a_code_without_words_is_an_error():
    with pytest.raises(KeyError, match="no such code"):
        said(Reason("no such code"))


def codes_made() -> set[str]:
    """Return the codes that the package's source gives to `Reason`, but for those of the table."""
    folder = Path(leakcheck.__file__).parent
    calls = (
        node
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and re.fullmatch(r"Reason(\.of)?", ast.unparse(node.func))
    )
    first = (call.args[0] for call in calls if call.args)
    return {
        each.value
        for node in first
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def test_each_code_that_is_made_has_words():
    made = codes_made()

    assert len(made) > 30
    assert made <= SAID.keys()
