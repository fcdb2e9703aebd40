from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Edit, Finding, Fix, Location
from leakcheck.static.fix import applicable, apply_edits, fix_text, split_lines, unified_diff


def check(text: str) -> tuple[Finding, ...] | None:
    """Flag every bare `loss` that is added; the fix appends `.item()`. None: does not parse."""
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    found: list[Finding] = []
    for number, line in enumerate(split_lines(text), start=1):
        found += [
            finding(number, match.start(1) + 1, match.end(1) + 1, ".item()")
            for match in re.finditer(r"\+= (loss)\b(?!\.)", line)
        ]
    return tuple(found)


def finding(line: int, column: int, end: int, text: str, safety: str = "safe") -> Finding:
    fix = Fix("store a number", (Edit(line, end, line, end, text),), safety)
    return Finding("rule", "LK999", Location("a.py", line, column, line, end), "leaks", fix=fix)


def insert(line: int, column: int, text: str) -> Edit:
    return Edit(line, column, line, column, text)


def test_edits_are_applied_from_last_to_first():
    text = "a = 1\nb = 2\nc = 3\n"
    edits = [Edit(1, 5, 1, 6, "one"), Edit(3, 1, 3, 2, "z"), insert(2, 6, "0"), insert(4, 1, "d\n")]

    assert apply_edits(text, edits) == "a = one\nb = 20\nz = 3\nd\n"


def test_an_edit_may_span_lines_and_remove_them():
    assert apply_edits("a\nb\nc\n", [Edit(2, 1, 3, 1, "")]) == "a\nc\n"


def test_an_edit_given_twice_counts_once():
    edits = [insert(1, 1, "import torch\n"), insert(1, 1, "import torch\n")]

    assert apply_edits("x\n", edits) == "import torch\nx\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_the_file_ends_its_lines(newline):
    text = f"a{newline}b{newline}"

    assert apply_edits(text, [insert(2, 1, "x\ny\n")]) == newline.join(["a", "x", "y", "b", ""])


def test_form_feeds_and_unicode_line_separators_begin_no_line_and_columns_count_characters():
    text = "\x0cx = 'é\u2028😀'\x0b; y\nz = '🎉'; w\n"

    assert apply_edits(text, [Edit(2, 10, 2, 11, "v")]) == text.replace("w", "v")


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(1, 1, 1, 4, "x"), Edit(1, 3, 1, 5, "y")],
        [insert(9, 1, "x")],
        [insert(1, 99, "x")],
        [insert(1, 0, "x")],
        [Edit(1, 4, 1, 2, "x")],
    ],
)
def test_edits_that_overlap_or_lie_outside_are_refused(edits):
    with pytest.raises(ValueError, match="overlaps another or lies outside"):
        apply_edits("abcdef\nghi\n", edits)


def test_fixing_removes_the_findings_it_names():
    fixed = fix_text("total += loss\r\nother += loss\r\n", check)

    assert fixed.text == "total += loss.item()\r\nother += loss.item()\r\n"
    assert len(fixed.fixed) == 2
    assert fixed.left == ()


def test_fixing_twice_changes_nothing_more():
    once = fix_text("t += loss; u += loss\nfor x in y: t += loss\n", check)

    again = fix_text(once.text, check)

    assert (again.text, again.fixed) == (once.text, ())


def test_unsafe_fixes_are_applied_only_when_asked_for():
    def unsafe_check(text):
        return () if "item" in text else (finding(1, 6, 10, ".item()", "unsafe"),)

    assert fix_text("t += loss\n", unsafe_check).text == "t += loss\n"
    assert fix_text("t += loss\n", unsafe_check, unsafe=True).text == "t += loss.item()\n"


def test_advice_is_never_applied():
    assert not applicable(Fix("", (insert(1, 1, "x"),), "display"), unsafe=True)
    assert not applicable(Fix("think about it"), unsafe=True)
    assert not applicable(None, unsafe=True)


def test_a_fix_that_breaks_the_syntax_is_given_up_and_the_others_are_kept():
    def check_with_a_bad_fix(text):
        found = check(text)
        bad = (finding(1, 1, 2, "((("),)
        return found if found is None else (*bad, *found)

    fixed = fix_text("t = 0\nt += loss\nt += loss\n", check_with_a_bad_fix)

    assert fixed.text == "t = 0\nt += loss.item()\nt += loss.item()\n"
    assert [each.location.line for each in fixed.left] == [1]


def test_a_fix_that_leaves_its_finding_in_place_is_given_up():
    def check_stubborn(text):
        return (finding(1, 1, 2, "x"),)

    fixed = fix_text("t = 1\n", check_stubborn)

    assert fixed.text == "t = 1\n"
    assert fixed.fixed == ()


def test_a_fix_that_makes_another_finding_is_given_up():
    def check_moving(text):
        if "moved" not in text:
            return (finding(1, 1, 2, "moved"),)
        return (Finding("other-rule", "LK998", Location("a.py", 1, 1, 1, 2), "now this"),)

    assert fix_text("t = 1\n", check_moving).text == "t = 1\n"


def test_of_two_overlapping_fixes_the_second_waits_for_the_next_round():
    def check_twice(text):
        first = (finding(1, 1, 2, "a"),) if "a" not in text else ()
        second = (finding(1, 1, 2, "b"),) if "b" not in text else ()
        return first + second

    fixed = fix_text("t = 1\n", check_twice)

    assert sorted(fixed.text) == sorted("tab = 1\n")
    assert len(fixed.fixed) == 2


def test_a_text_that_does_not_parse_is_left_alone():
    assert fix_text("t += (\n", check).text == "t += (\n"


def test_the_diff_is_one_that_patch_takes():
    assert unified_diff("a\nb", "a\nc", "x.py") == (
        "--- x.py\n+++ x.py\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n"
        "+c\n\\ No newline at end of file\n"
    )


STATEMENT = st.sampled_from(
    ["t += loss", "t += loss.item()", "if x:\n    t += loss", "t = [\n  loss]", "# t += loss",
     "'''\nt += loss\n'''", "x = 'ü'; t += loss", "\x0ct += loss", "def f(t):\n\tt += loss"]
)  # fmt: skip


@given(st.lists(STATEMENT, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_whatever_is_fixed_parses_and_is_fixed_for_good(statements, newline, ended):
    text = "\n".join(statements).replace("\n", newline) + newline * ended

    once = fix_text(text, check)

    ast.parse(once.text)
    assert once.left == ()
    assert fix_text(once.text, check).text == once.text
    assert once.text.replace(".item()", "") == text.replace(".item()", "")


@given(st.text(alphabet="ab\n\r\x0c\u2028é"))
def test_lines_put_together_are_the_text(text):
    assert "".join(split_lines(text)) == text
    assert not any(re.search(r"[\r\n].", line.replace("\r\n", "\n"), re.S)
                   for line in split_lines(text))  # fmt: skip
