from __future__ import annotations

from typing import get_args

import pytest

from leakcheck.model import (
    Finding,
    Holder,
    HolderKind,
    LeakTrace,
    Link,
    Location,
    Report,
    Run,
    Suspect,
    Unreadable,
)


def finding(line: int, context: str = "total += loss") -> Finding:
    where = Location("train.py", line, 5, line, 18)
    return Finding("undetached-accumulator", "LK101", where, "keeps the graph", context=context)


def test_a_fingerprint_survives_a_move_and_a_reindent_but_not_an_edit():
    assert finding(3).fingerprint == finding(90).fingerprint
    assert finding(3).fingerprint == finding(3, "    total +=  loss").fingerprint
    assert finding(3).fingerprint != finding(3, "total += other").fingerprint


def test_suspects_with_the_same_holder_path_share_a_fingerprint():
    trace = LeakTrace("local `losses` in main()", (Link("[x]", "list"),))
    slow = Suspect("tensor", "Tensor ()", bytes_per_step=8.0, trace=trace)
    fast = Suspect("tensor", "Tensor ()", bytes_per_step=9.0, trace=trace)

    assert slow.fingerprint == fast.fingerprint


def test_the_exit_code_follows_the_worst_that_was_learned():
    run = Run("train.py", steps=10, seconds=1.0)

    assert Report().exit_code == 0
    assert Report(findings=(finding(1),), unreadable=(Unreadable("b.py", "no"),)).exit_code == 1
    assert Report(unreadable=(Unreadable("b.py", "no"),)).exit_code == 2
    assert Report(run=run, verdict="steady", findings=(finding(1),)).exit_code == 0
    assert Report(run=run, verdict="growing").exit_code == 1
    assert Report(run=run, verdict="unclear").exit_code == 2


LOCAL = Holder("local", "meter", function="main")


@pytest.mark.parametrize(
    ("holder", "told"),
    [
        (LOCAL, "local `meter` in main()"),
        (Holder("global", "rows"), "global `rows`"),
        (Holder("global", "rows", "pkg.log"), "global `pkg.log.rows`"),
        (
            Holder("attribute", "kept", "Meter", root=LOCAL),
            "attribute `Meter.kept`, from local `meter` in main()",
        ),
        (Holder("closure", "seen", function="hook"), "closure cell `seen` of hook()"),
        (
            Holder("memo", function="table", root=Holder("module", "tables")),
            "lru_cache of table(), from module `tables`",
        ),
        (Holder("outside"), "held outside Python: no Python object refers to it"),
        (
            Holder("outside", function="consume()"),
            "perhaps a variable of consume(), in another thread",
        ),
        (
            Holder("outside", root=Holder("gradient")),
            "held outside Python: gradient of a parameter",
        ),
        (Holder(), ""),
    ],
)
def test_a_holder_says_what_it_is(holder, told):
    assert str(holder) == told
    assert bool(holder) == bool(told)


@pytest.mark.parametrize("kind", sorted(set(get_args(HolderKind)) - {"unknown", "outside"}))
def test_each_kind_of_holder_has_words(kind):
    assert str(Holder(kind, "name", "Owner", "function"))


def test_what_has_no_name_is_known_to_the_source_by_where_it_is_found_from():
    assert Holder("memo", function="table", root=LOCAL).named == LOCAL
    assert Holder("attribute", "kept", "Meter", root=LOCAL).named.qualified == "Meter.kept"
    assert not Holder("gradient").named
