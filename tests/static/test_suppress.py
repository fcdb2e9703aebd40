from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Finding, Location
from leakcheck.static.fix import apply_edits, split_lines
from leakcheck.static.suppress import UnusedSuppression, add_ignores, suppress

SLUGS = {"bad-sum": "bad-sum", "LK901": "bad-sum", "bad-list": "bad-list", "LK902": "bad-list",
         "unused-suppression": "unused-suppression", "LK001": "unused-suppression"}  # fmt: skip
ALL = frozenset(SLUGS.values())


def check(text: str) -> tuple[Finding, ...]:
    """Flag each BAD (bad-sum) and WORSE (bad-list) that is not in a comment."""
    found = []
    for number, line in enumerate(split_lines(text), start=1):
        code = line.split("#")[0]
        for word, rule, id in (("BAD", "bad-sum", "LK901"), ("WORSE", "bad-list", "LK902")):
            if word in code:
                column = code.index(word) + 1
                at = Location("a.py", number, column, number, column + len(word))
                found.append(Finding(rule, id, at, "leaks"))
    return tuple(found)


def left(text: str, active=ALL) -> list[str]:
    text = textwrap.dedent(text)
    active_findings = [finding for finding in check(text) if finding.rule in active]
    found = suppress("a.py", text, active_findings, SLUGS, active)
    return [f"{f.location.line}:{f.rule}" for f in found]


@pytest.mark.parametrize(
    "line",
    [
        "x = BAD  # leakcheck: ignore[bad-sum] counted on purpose",
        "x = BAD  # leakcheck: ignore[LK901]",
        "x = BAD  #leakcheck:ignore[ bad-sum , bad-list ]; WORSE",
        "x = BAD  # type: ignore  # leakcheck: ignore[bad-sum]  # and more",
        "x = BAD  # noqa: LK901",
        "x = BAD  # NOQA:E501,lk901 because",
        "x = BAD  # noqa: E501 LK901",
        "x = BAD  # leakcheck: file-ignore[bad-sum]",
    ],
)
def test_a_comment_at_the_end_of_the_line_accepts_its_findings(line):
    assert left(line.replace(", bad-list ]; WORSE", "]") + "\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "x = BAD  # leakcheck: ignore[bad-list]",
        "x = BAD  # noqa: E501",
        "x = BAD  # noqa",
        "x = BAD; y = '# leakcheck: ignore[bad-sum]'",
        "x = BAD  # leakcheck: ignore",
        "x = BAD  # leakcheck: ignored[bad-sum]",
    ],
)
def test_other_rules_strings_and_blanket_forms_accept_nothing(line):
    assert "1:bad-sum" in left(line + "\n")


def test_a_comment_at_any_line_of_a_statement_accepts_all_of_that_logical_line():
    assert left("""\
        x = f(
            1,  # leakcheck: ignore[bad-sum]
            BAD,
        )
        y = BAD + \\
            1  # leakcheck: ignore[bad-sum]
        z = BAD
        """) == ["7:bad-sum"]


def test_a_comment_on_its_own_line_accepts_the_whole_statement_below():
    assert left("""\
        # leakcheck: ignore[bad-sum] all of it is meant

        # another comment
        @decorated
        def f():
            x = BAD
            if x:
                y = BAD
        z = BAD
        """) == ["9:bad-sum"]


def test_a_comment_behind_a_loop_header_accepts_the_header_alone():
    assert left("""\
        for x in BAD:  # leakcheck: ignore[bad-sum]
            y = BAD
        """) == ["2:bad-sum"]


def test_a_comment_inside_a_block_covers_the_next_statement_of_that_block():
    assert left("""\
        try:
            # leakcheck: ignore[bad-sum]
            x = BAD
            y = BAD
        # leakcheck: ignore[bad-sum]
        except E:
            z = BAD
        """) == ["4:bad-sum"]


def test_a_file_comment_accepts_the_rule_everywhere():
    assert left("""\
        x = BAD
        # leakcheck: file-ignore[bad-sum] this program measures leaks
        y = BAD; z = WORSE
        """) == ["3:bad-list"]


def test_a_comment_that_accepts_nothing_is_a_finding():
    assert left("x = 1  # leakcheck: ignore[bad-sum]\n") == ["1:unused-suppression"]
    assert left("x = BAD  # leakcheck: ignore[bad-sum, bad-list]\n") == ["1:unused-suppression"]
    assert left("x = 1  # leakcheck: file-ignore[bad-sum]\n") == ["1:unused-suppression"]
    assert left("x = 1  # leakcheck: ignore[]\n") == ["1:unused-suppression"]


def test_a_comment_for_a_rule_that_does_not_run_is_left_alone():
    assert left("x = 1  # leakcheck: ignore[bad-sum]\n", ALL - {"bad-sum"}) == []
    assert left("x = 1  # leakcheck: ignore[bad-sum]\n", ALL - {"unused-suppression"}) == []
    assert left("x = 1  # noqa: LK901\n") == []
    assert left("x = 1  # leakcheck: ignore[bad-sum, unused-suppression] soon\n") == []


def test_a_misspelt_rule_is_told_with_the_nearest_name():
    found = suppress("a.py", "x = 1  # leakcheck: ignore[bad-sun]\n", (), SLUGS, ALL)

    assert [(f.message, f.help) for f in found] == [
        ("no rule is called `bad-sun`", "did you mean `bad-sum`?")
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # leakcheck: ignore[bad-sum] reason\r\n", "x = 1\r\n"),
        ("x = 1  # why  # leakcheck: ignore[bad-sum]\n", "x = 1  # why\n"),
        ("x = 1  # leakcheck: ignore[bad-sum] a  # why\n", "x = 1  # why\n"),
        ("if x:\n    # leakcheck: ignore[bad-sum]\n    y = 1\n", "if x:\n    y = 1\n"),
        ("x = 1\n# leakcheck: ignore[bad-sum]", "x = 1\n"),
        ("\x0cx = 'é'\t# leakcheck: ignore[bad-sum]\n", "\x0cx = 'é'\n"),
        (
            "x = BAD  # leakcheck: ignore[bad-list, LK901] y\n",
            "x = BAD  # leakcheck: ignore[LK901] y\n",
        ),
    ],
)
def test_the_fix_takes_out_what_is_of_no_use(before, after):
    found = suppress("a.py", before, check(before), SLUGS, ALL)

    assert [f.rule for f in found] == [UnusedSuppression.slug]
    assert apply_edits(before, found[0].fix.edits) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = BAD\n", "x = BAD  # leakcheck: ignore[bad-sum] known\n"),
        ("x = BAD\r\n", "x = BAD  # leakcheck: ignore[bad-sum] known\r\n"),
        ("x = BAD", "x = BAD  # leakcheck: ignore[bad-sum] known"),
        ("x = BAD, WORSE  # odd\n",
         "x = BAD, WORSE  # odd  # leakcheck: ignore[bad-list, bad-sum] known\n"),
        ("x = BAD + '''\n1\n'''\n", "x = BAD + '''\n1\n'''  # leakcheck: ignore[bad-sum] known\n"),
        ("x = (BAD +\n  1)\n", "x = (BAD +\n  1)  # leakcheck: ignore[bad-sum] known\n"),
        ("x = BAD, WORSE  # leakcheck: ignore[LK901] why\n",
         "x = BAD, WORSE  # leakcheck: ignore[LK901, bad-list] why\n"),
        ("for x in BAD:\n    pass\n",
         "for x in BAD:  # leakcheck: ignore[bad-sum] known\n    pass\n"),
    ],
)  # fmt: skip
def test_findings_are_accepted_by_comments_added_to_their_lines(before, after):
    found = suppress("a.py", before, check(before), SLUGS, ALL)

    added = add_ignores(before, found, "known")

    assert added == after
    assert suppress("a.py", added, check(added), SLUGS, ALL) == ()


WORDS = ["x = BAD", "x = 1", "y = WORSE", "if x:", "    z = BAD", "# leakcheck: ignore[bad-sum]",
         "x = BAD  # leakcheck: ignore[LK901, bad-list] é", "'''", "f(BAD,", ")", "",
         "# leakcheck: file-ignore[bad-list]", "\x0c", "x = 1  # noqa: LK902"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_text_whatever_is_judged_without_an_error(lines, newline):
    text = newline.join(lines)

    found = suppress("a.py", text, check(text), SLUGS, ALL)

    assert {f.location.line for f in found} <= set(range(1, len(lines) + 1))


@pytest.mark.parametrize(
    "comment",
    ["ignor[bad-sum]", "ignore(bad-sum)", "disable=bad-sum", "ignore-file[bad-sum]"],
)
def test_a_comment_in_another_spelling_accepts_nothing_and_is_told(comment):
    text = f"x = BAD  # leakcheck: {comment} because\n"

    found = suppress("a.py", text, check(text), SLUGS, ALL)

    assert [(f.rule, f.message) for f in found] == [
        ("bad-sum", "leaks"),
        ("unused-suppression", "this comment names no rule, so it accepts nothing"),
    ]


def test_prose_after_our_name_is_no_comment_of_ours():
    assert left("x = 1  # leakcheck: see the notes (they are long)\n") == []


def test_a_group_of_rules_cannot_be_accepted():
    found = suppress("a.py", "x = 1  # leakcheck: ignore[LK9]\n", (), SLUGS, ALL)

    assert [(f.message, f.help) for f in found] == [
        ("no rule is called `LK9`", "name each rule: a comment does not accept a whole group")
    ]
