"""The table that decides, row by row and as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.report import decisions, reasons
from leakcheck.runtime import outlook
from leakcheck.runtime.outlook import TABLE, Beyond, Case, Outlook, outlook_of
from leakcheck.source.acts import Role
from leakcheck.source.calls import Reach
from leakcheck.source.guards import Guard, GuardKind
from leakcheck.source.uses import RELIEVES, Use

ADD = Use("add", Guard(), "each step", "train.py", 4, "rows.append(x)")
CLEAR = Use("take", Guard(), "each step", "train.py", 7, "rows.clear()", sure=True)
BELOW = Guard("below", 300, "300", "len(rows) < 300", "train.py", 3)
SOME = Guard("above", None, "n", "len(rows) > n", "train.py", 6)
NEW = Guard("new", None, "", "key not in rows", "train.py", 3)
EVERY = Guard("every", 90, "90", "step % 90 == 0", "train.py", 6)


def use(role: Role, guard: Guard = Guard(), reach: Reach = "each step", **known) -> Use:  # noqa: B008
    return Use(role, guard, reach, "train.py", 7, "rows.clear()", **known)


OWN = use("take", reach="elsewhere", sure=True, ran=9, by_key=True)
LATER = Use("read", Guard(), "once", "train.py", 9, "plot(rows)", after=True)
GATHERS = Use("read", Guard(), "once", "train.py", 9, "torch.cat(rows)", gathers=True)
ROWS = {
    "due-in-time": (
        Case((ADD, CLEAR), due=True),
        ("emptied", None, "unclear", "the event loop lets go of it when its time comes"),
    ),
    "lasting-graph": (
        Case((ADD, use("replace", reach="when a loop turns")), graph=True),
        ("leak", 0, "growing", "a graph of past steps is kept, and no backward is to free it"),
    ),
    "over-its-limit": (
        Case((replace(ADD, guard=BELOW),), length=380, rises=True),
        ("leak", 0, "growing", "it has 380 elements, more than the 300 that it is to hold"),
    ),
    "taken-in-vain": (
        Case((ADD, replace(CLEAR, ran=2)), rises=True),
        (
            "leak",
            0,
            "growing",
            "`rows.clear()` (train.py:7) ran again and again, and it went on growing",
        ),
    ),
    "left-by-some-requests": (
        Case((ADD, OWN), rises=True, per_request=True),
        (
            "leak",
            0,
            "growing",
            "`rows.clear()` (train.py:7) takes a request's own entry away, and not every request "
            "comes to it",
        ),
    ),
    "published": (
        Case((ADD, use("take", reach="elsewhere")), published=True),
        ("leak", 0, "growing", "a leak of the installed version that is known"),
    ),
    "fills-to-a-number": (
        Case((replace(ADD, guard=replace(BELOW, n=500)),), length=100),
        ("fills", 600, "growing", "it fills to at most 500 elements"),
    ),
    "fills-to-a-limit": (
        Case((ADD, use("take", SOME))),
        (
            "fills",
            1000,
            "look again",
            "it fills to a limit: len(rows) > n (train.py:6)",
        ),
    ),
    "gathers-too-much": (
        Case((ADD, GATHERS), beyond=Beyond(10**9, 4e12, 20 << 30)),
        (
            "leak",
            0,
            "growing",
            "the loop gathers 1,000,000,000 elements, 3.6 TiB, before `torch.cat(rows)` "
            "(train.py:9) uses it, and there is room for 20.0 GiB",
        ),
    ),
    "gathered": (
        Case((ADD, use("take", reach="elsewhere"), LATER), trains=False),
        (
            "emptied",
            None,
            "steady",
            "`plot(rows)` (train.py:9) uses it after the loop: it may be gathered on purpose",
        ),
    ),
    "emptied-now-and-then": (
        Case((ADD, use("replace", EVERY))),
        (
            "emptied",
            1000,
            "look again",
            "`rows.clear()` (train.py:7) empties it every so often",
        ),
    ),
    "emptied-at-a-turn": (
        Case((ADD, use("take", reach="when a loop turns"))),
        (
            "emptied",
            50_000,
            "growing",
            "`rows.clear()` (train.py:7) empties it when the loop turns",
        ),
    ),
    "took-nothing-yet": (
        Case((replace(ADD, ran=20), use("take", ran=20)), rises=True),
        (
            "emptied",
            1000,
            "growing",
            "`rows.clear()` (train.py:7) runs at each step and took nothing so far",
        ),
    ),
    "emptied-elsewhere": (
        Case((ADD, use("escape", reach="elsewhere"))),
        (
            "emptied",
            5000,
            "growing",
            "`rows.clear()` (train.py:7) may still take it away",
        ),
    ),
    "memo": (
        Case((replace(ADD, guard=NEW),)),
        (
            "memo",
            700,
            "growing",
            "`rows.append(x)` (train.py:4) adds only what is new",
        ),
    ),
    "does-not-fit": (
        Case((ADD,), beyond=Beyond(10**9, 4e12, 20 << 30)),
        (
            "leak",
            0,
            "growing",
            "its limit is 1,000,000,000 elements, 3.6 TiB, and there is room for 20.0 GiB",
        ),
    ),
    "grows": (
        Case((ADD,)),
        ("leak", 0, "growing", "nothing takes it away"),
    ),
}


def test_a_known_leak_is_waited_for_once_something_was_taken_from_it():
    taken = use("take", reach="elsewhere", ran=1)

    assert outlook_of(Case((ADD, taken), published=True)).reason.code == "emptied-elsewhere"


def test_what_is_emptied_now_and_then_is_not_foretold_to_be_too_much():
    beyond = Beyond(10**9, 4e12, 20 << 30)
    case = Case((ADD, GATHERS, use("replace", EVERY)), beyond=beyond)

    assert outlook_of(case).reason.code == "gathered"


def test_what_a_training_keeps_grows_though_it_is_used_in_the_end():
    assert outlook_of(Case((ADD, LATER))).reason.code == "grows"
    assert outlook_of(Case((ADD, GATHERS))).reason.code == "gathered"


def test_the_whole_table():
    found = {code: outlook_of(case) for code, (case, _) in ROWS.items()}

    assert {code: one.reason.code for code, one in found.items()} == {code: code for code in ROWS}
    told = {
        code: (one.kind, one.wait_steps, one.then, reasons.said(one.reason))
        for code, one in found.items()
    }
    assert told == {code: expected for code, (_, expected) in ROWS.items()}
    assert [row.code for row in TABLE] == list(ROWS)


def test_each_row_has_words():
    assert set(decisions.CONDITIONS) == {row.code for row in TABLE}


guards = st.builds(
    Guard,
    st.sampled_from(get_args(GuardKind)),
    st.none() | st.integers(1, 10**12),
    st.just("n"),
    st.just("len(rows) > n"),
    st.just("train.py"),
    st.just(3),
)
uses = st.builds(
    Use,
    st.sampled_from(get_args(Role)),
    guards,
    st.sampled_from(get_args(Reach)),
    st.just("train.py"),
    st.integers(1, 9),
    st.just("rows.pop()"),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
evidences = st.builds(
    Case,
    st.lists(uses, max_size=5).map(tuple),
    st.none() | st.integers(0, 10**6),
    *[st.booleans()] * 5,
)


@given(evidences)
def test_any_evidence_has_an_outlook_that_can_be_said(case):
    found = outlook_of(case)

    assert reasons.said(found.reason)


@given(evidences)
def test_a_leak_is_told_at_once_and_everything_else_is_waited_for_or_over(case):
    found = outlook_of(case)

    assert (found.wait_steps == 0) is (found.kind == "leak" or found.then == "steady")


@given(evidences)
def test_the_source_alone_never_acquits(case):
    assert outlook_of(case).then != "steady"


@given(evidences, uses.filter(lambda use: use.role == "read"))
def test_what_only_reads_changes_nothing(case, read):
    assert outlook_of(replace(case, uses=(*case.uses, read))) == outlook_of(case)


@given(evidences, uses.filter(lambda use: use.role in RELIEVES))
def test_what_nobody_calls_or_no_machine_comes_to_changes_nothing(case, relief):
    never = replace(relief, reach="never called", ran=0, sure=False)
    huge = replace(relief, guard=replace(relief.guard, n=outlook.MOST_HELD + 1), sure=False)
    alone = outlook_of(case)

    assert outlook_of(replace(case, uses=(*case.uses, never))) == alone
    assert outlook_of(replace(case, uses=(*case.uses, huge))) == alone


@given(evidences, st.integers(2, 9))
def test_what_took_away_again_and_again_is_no_hope(case, ran):
    growing = replace(case, uses=(ADD, replace(CLEAR, ran=ran)), rises=True)

    assert outlook_of(growing).kind == "leak"


@pytest.mark.parametrize("role", sorted(RELIEVES))
def test_each_role_that_relieves_is_waited_for_until_it_has_run_in_vain(role):
    found: Outlook = outlook_of(Case((ADD, use(role, reach="elsewhere"))))

    assert (found.kind, found.then) in (("emptied", "growing"), ("fills", "look again"))


@pytest.mark.parametrize(("barred", "kind"), [(True, "leak"), (False, "emptied")])
def test_what_is_behind_a_condition_that_never_holds_takes_nothing_away(barred, kind):
    clears = use("take", Guard("flag"), "each step", barred=barred)

    assert outlook_of(Case((ADD, clears))).kind == kind


@pytest.mark.parametrize(
    ("limited", "kind"),
    [
        (use("cut", SOME), "fills"),
        (use("ring"), "fills"),
        (use("take", reach="when a loop turns"), "leak"),
        (use("replace", EVERY), "emptied"),
        (use("take", Guard("flag")), "emptied"),
        (use("take", reach="elsewhere"), "leak"),
        (use("escape", EVERY), "leak"),
    ],
)
def test_a_graph_is_let_go_soon_or_is_kept(limited, kind):
    found = outlook_of(Case((ADD, limited), graph=True))

    assert found.kind == kind
    assert found.then in ("growing", "look again")
    assert (found.wait_steps or 0) <= outlook.GRAPH_LIMIT_STEPS


@pytest.mark.parametrize(("detached", "kind"), [(False, "leak"), (True, "fills")])
def test_one_tensor_that_is_cut_keeps_its_history_unless_it_is_detached(detached, kind):
    cut = use("cut", SOME, detached=detached)

    assert outlook_of(Case((ADD, cut), graph=True, alone=True)).kind == kind


def test_a_graph_that_a_backward_takes_is_no_leak_by_itself():
    taken = use("replace", reach="when a loop turns")

    assert outlook_of(Case((ADD, taken), graph=True, awaited=True)).kind == "emptied"


@pytest.mark.parametrize(
    ("guard", "reach", "code"),
    [
        (replace(SOME, n=300), "each step", "over-its-limit"),
        (replace(SOME, n=300, only=False), "each step", "fills-to-a-limit"),
        (replace(SOME, n=300), "when a loop turns", "fills-to-a-limit"),
        (replace(SOME, n=300, only=False), "elsewhere", "emptied-elsewhere"),
        (replace(SOME, n=500), "when a loop turns", "fills-to-a-number"),
    ],
)
def test_only_what_is_cut_at_each_step_is_over_its_limit(guard, reach, code):
    case = Case((ADD, use("take", guard, reach)), length=400, rises=True)

    assert outlook_of(case).reason.code == code


OF_SELF = Guard("above", None, "", "len(self.rows) > self.most", "train.py", 6, of_self=True)
RAN_FOR = {
    "another": (replace(OF_SELF, n=600), False, 24, "fills-to-a-number"),
    "one that is longer": (replace(OF_SELF, n=90), False, 24, "taken-in-vain"),
    "another, at an unknown length": (OF_SELF, False, 24, "fills-to-a-limit"),
    "another, by a flag": (replace(OF_SELF, kind="flag"), False, 24, "emptied-elsewhere"),
    "this one": (OF_SELF, True, 24, "taken-in-vain"),
    "each": (OF_SELF, False, 48, "taken-in-vain"),
    "whichever, by the step": (replace(EVERY, n=9), False, 24, "taken-in-vain"),
}


@pytest.mark.parametrize(("guard", "took", "ran", "code"), RAN_FOR.values(), ids=RAN_FOR)
def test_what_an_object_does_behind_its_own_condition_says_nothing_of_another(
    guard, took, ran, code
):
    cut = use("take", guard, sure=True, ran=ran, asked=48, took=took)
    case = Case((ADD, cut), length=106, rises=True)

    assert outlook_of(case).reason.code == code
