"""Which leads are one leak, and at what rates it is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from leakcheck.model import Holder, LeakTrace, Link
from leakcheck.runtime.attribution.suspects import Lead, suspects_from
from leakcheck.runtime.attribution.trace import Told
from leakcheck.runtime.introspection.frames import Site
from tests.holders import held_by


def lead(kind, holder, count, in_bytes, blocks=0.0, edge="[x]") -> Lead:
    links = (Link(".d", "dict"), Link(edge, "list", suspect=True))
    told = Told(LeakTrace(f"global `{holder}`", links), held_by(f"global `{holder}`"), False)
    return Lead(
        kind,
        "list of float",
        told,
        objects_per_step=count,
        bytes_per_step=in_bytes,
        blocks_per_step=blocks,
    )


def rates(*leads: Lead, blocks: float = 0.0):
    found = suspects_from(list(leads), blocks)
    return [(one.kind, str(one.holder), one.objects_per_step, one.bytes_per_step) for one in found]


def test_containers_of_one_holder_are_one_leak_with_the_sum_of_their_rates():
    two = lead("object", "bank", 1.0, 100.0), lead("object", "bank", 2.0, 300.0)

    assert rates(*two) == [("object", "global `bank`", 3.0, 400.0)]


def test_tensors_and_the_container_that_holds_them_are_the_same_things():
    tensors, container = (
        lead("tensor", "kept", 1.0, 400.0),
        lead("tensor", "kept", None, 410.0),
    )

    assert rates(tensors, container) == [("tensor", "global `kept`", 1.0, 410.0)]


def test_of_lists_that_grow_by_turns_the_blocks_tell_how_many_there_are():
    seen = replace(lead("object", "bank", 2.0, 680.0, blocks=68.0), parts=16)

    assert rates(seen, blocks=272.0) == [("object", "global `bank`", 8.0, 2720.0)]


def test_of_dictionaries_that_grow_at_each_step_blocks_are_not_taken_for_objects():
    seen = replace(lead("object", "hooks", 6.0, 900.0, blocks=6.0), parts=6)

    assert rates(seen, blocks=27.0) == [("object", "global `hooks`", 6.0, 900.0)]


def test_blocks_that_are_about_those_seen_or_only_a_few_more_correct_nothing():
    assert rates(lead("object", "bank", 2.0, 680.0, 68.0), blocks=80.0)[0][2:] == (2.0, 680.0)
    assert rates(lead("object", "bank", 1.0, 100.0, 1.0), blocks=3.0)[0][2:] == (1.0, 100.0)
    assert rates(lead("object", "bank", 1.0, 100.0, 9.0), blocks=0.0)[0][2:] == (1.0, 100.0)


def test_two_holders_are_two_leaks_and_nothing_is_corrected():
    two = lead("object", "bank", 1.0, 2000.0, 1.0), lead("object", "memo", 2.0, 3000.0, 2.0)

    assert rates(*two, blocks=90.0) == [
        ("object", "global `memo`", 2.0, 3000.0),
        ("object", "global `bank`", 1.0, 2000.0),
    ]


def test_a_log_of_numbers_beside_hooks_is_no_leak_of_its_own():
    log, hooks = lead("object", "history", 1.0, 20.0), lead("object", "model", 0.5, 54.0)
    hooks = replace(hooks, what="OrderedDict of function")

    assert rates(log, hooks) == [("object", "global `model`", 0.5, 54.0)]
    assert len(rates(replace(log, bytes_per_step=40.0), hooks)) == 2  # about as fast
    assert len(rates(log)) == 1


def test_one_line_that_adds_to_an_attribute_is_one_leak_in_whatever_ways_it_is_reached():
    def reached(root: str) -> Lead:
        links = (Link(".log", "list", suspect=True),)
        told = Told(LeakTrace(root, links), held_by(f"attribute `Node.log`, from {root}"), False)
        line = Counter({Site("train.py", 9): 24})
        return Lead(
            "object", "list of Entry", told, line, objects_per_step=1.0, bytes_per_step=900.0
        )

    two = reached("global `nodes`"), reached("local `self` in exchange()")

    assert rates(*two) == [("object", "attribute `Node.log`, from global `nodes`", 2.0, 1800.0)]


def test_few_objects_beside_hooks_that_were_counted_are_not_the_leak():
    hooks = replace(lead("object", "hooks", 0.6, 60.0), what="OrderedDict of function")
    history = replace(lead("object", "history", 0.2, 127.0), what="list of dict")
    heavy = replace(lead("object", "records", 1.0, 5000.0), what="list of dict")
    counted = replace(hooks, of_hooks=True)

    assert {one[1] for one in rates(counted, history)} == {"global `hooks`"}
    assert {one[1] for one in rates(counted, heavy)} == {"global `hooks`", "global `records`"}
    assert {one[1] for one in rates(hooks, history)} == {"global `hooks`", "global `history`"}


def test_what_no_holder_is_known_of_is_one_leak_only_if_it_is_alike():
    nowhere = Told(LeakTrace("", (Link("[x]", "float", suspect=True),)), Holder(), False)
    lists = replace(lead("object", "bank", 1.0, 100.0), told=nowhere)
    sets = replace(lists, what="set of int", objects_per_step=0.5, bytes_per_step=40.0)

    assert rates(lists, sets) == [("object", "", 1.0, 100.0), ("object", "", 0.5, 40.0)]
    assert rates(lists, lists) == [("object", "", 2.0, 200.0)]
