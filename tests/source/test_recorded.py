"""The reader beside five older engines, on each source that their tests have."""

from __future__ import annotations

import pytest

from tests.source.recorded import Case, recorded

CASES = recorded()
_GUARDS = "test_guards.py::test_"
_MADE_ONCE = f"{_GUARDS}what_is_made_once_or_not_emptied_has_none"
_ELEMENTS = f"{_GUARDS}a_limit_of_each_element_limits_the_lists_in_it_and_not_itself"
_MAY_END = f"{_GUARDS}growth_under_a_condition_that_holds_for_a_while_may_end"
_REMOVALS = "test_removals.py::test_"
_TAKES = f"{_REMOVALS}what_is_not_known_to_read_or_add_may_take_away"
_EMPTIED = "test_emptied.py::test_"
_AGAIN = f"{_EMPTIED}a_local_of_a_function_that_is_called_again_and_again"
_CUTS = "test_cuts.py::test_"
_NEW = f"{_CUTS}what_a_new_object_begins_with_empties_none_that_is_there"
BEGINS = "a new object begins with it: another engine's own test says so"
LASTS = "what an object answers may be another some day, which the engines did not ask"
ALL_OF_IT = "all of it is left: another engine's own test says so"
ANOTHER = (
    "a variable, or the attribute of a class, that is another: one engine says so, one does not"
)
ANEW = "it is given something that has none of it, which no engine looked for"
NO_LOOP = "the loop that it ends adds nothing"
IN_VAIN = "it took one out at every run and it grew all the same"
# where the answer now is another, and why it is right
OTHERWISE = {
    "test_predicates.py::test_one_that_asks_something_else_is_none[if self.other():]": LASTS,
    f"{_CUTS}all_are_left[kept = kept - 0.1 * gradient]": ALL_OF_IT,
    f"{_CUTS}all_are_left[kept = kept[:]]": ALL_OF_IT,
    "test_limits_beside.py::test_the_last_of_a_list_with_more_is_a_window #3": ALL_OF_IT,
    f"{_CUTS}all_are_left[kept = {{key: other[key] for key in recent}}]": ANEW,
    f"{_MADE_ONCE}[if step % 90 == 0: kept = [first]]": ANEW,
    "test_limits_beside.py::test_those_that_are_not_compared_are_none"
    "[[row for row in rows if row.step > step - 2000]]": ANEW,
    f"{_REMOVALS}what_reads_or_adds_takes_nothing_away[kept = args.kept]": ANEW,
    f"{_AGAIN} #5": ANEW,
    f"{_NEW}[new = object.__new__(Log); new.kept = []; return new-False]": BEGINS,
    f"{_NEW}[new = type(self)(); new.kept = []; return new-False]": BEGINS,
    "test_conditions.py::test_a_condition_may_be_around_the_call_of_what_adds"
    "[if logger.left > 0:\\n    logger.log(x)  # ran\\n-True]": (
        "the method of an object is not the function of the file"
    ),
    "test_perhaps.py::test_a_graph_is_not_to_wait_nor_what_nobody_holds": (
        "a graph that is let go beside the line that adds is waited for, but for 200 steps only"
    ),
    f"{_GUARDS}attributes_emptied_by_a_method_that_is_called_again_and_again_have_a_limit": (
        "the loop on the line that adds passes for the one around the steps, which is left out"
    ),
    f"{_MADE_ONCE}[if not ready: kept = []]": "a flag may be set again: another engine says so",
    f"{_MADE_ONCE}[if step % 90 == 0: look()\\ndef look():\\n    kept = []]": ANOTHER,
    f"{_MADE_ONCE}[if step % 90 == 0: look([])\\ndef look(kept):\\n    kept.clear()]": ANOTHER,
    f"{_GUARDS}an_attribute_of_another_class_is_another_list": ANOTHER,
    f"{_GUARDS}the_same_name_in_another_function_is_another_list": ANOTHER,
    f"{_GUARDS}the_length_of_an_argument_limits_nothing #4": "without `global` it is a local",
    f"{_AGAIN} #6": "no function sets the global: `kept` is a local of it",
    f"{_ELEMENTS}[def add(k):\\n    recent = kept[k]\\n    if len(recent) > n: "
    "recent = recent[-n:]\\n-program.py:3 (len(recent) > n)]": "a local is set: the list stays",
    f"{_ELEMENTS}[def trim():\\n    for _, rows in kept.items():\\n        if len(rows) > 9: "
    "del rows[0]\\n-program.py:3 (len(rows) > 9)] #2": "the lists in it are cut, and it grows",
    f"{_ELEMENTS}[kept[k].append(x)\\nkept[k] = kept[k][-n:]\\n"
    "-program.py:2 (kept[k] = kept[k][-n:])] #2": "the line that adds does so to an element",
    f"{_GUARDS}what_a_branch_calls_may_keep_to_a_length[def add(x): kept.append(x)\\n"
    "while len(kept) < 300: add(x)\\nfor x in rows: add(x)\\n-False]": "only to begin with",
    f"{_GUARDS}a_place_that_only_goes_up_is_no_limit"
    "[if self.at >= len(kept): kept.append(x)\\nself.at += 1\\n-False]": "it goes up for ever",
    f"{_MAY_END}[try: return kept[key]\\nexcept KeyError: pass\\nkept[key] = x\\n-False]": (
        "to return outside of a function is no Python; in one it is a memo"
    ),
    f"{_MAY_END}[def get(key):\\n    if len(kept) < 32: return None\\n"
    "    kept[key] = x\\n-False]": "it is added to above a length",
    "test_predicates.py::test_one_that_asks_something_else_is_none[if not self.busy():]": (
        "an order of sizes may cease to hold: asked in line, another engine says so"
    ),
    "test_limits_beside.py::test_what_is_not_added_to_with_it_does_not"
    "[if len(queue) > 9:\\n    queue.pop()\\n    kept.append(x)\\n]": (
        "the length of what is taken from comes again"
    ),
    f"{_EMPTIED}one_that_none_empties[self.kept[0] = []]": "one element is set, none is gone",
    f"{_EMPTIED}a_local_of_a_function_that_is_called_for_each_of_some"
    "[[train(n) for n in sizes]] #2": "the only call of it is seen",
    "test_perhaps.py::test_what_is_made_with_an_attribute_that_is_missing_is_made_once": (
        "it is made where it is missing: another engine says so"
    ),
    f"{_TAKES}[assert len(kept) < 9999]": NO_LOOP,
    f"{_TAKES}[if len(kept) > n: break]": NO_LOOP,
    f"{_TAKES}[if len(kept) > n: raise StopIteration]": NO_LOOP,
    f"{_TAKES}[while len(kept) < n: pass]": NO_LOOP,
    f"{_REMOVALS}what_took_one_each_time_while_it_grew_has_not_kept_up[del kept[0]]": IN_VAIN,
    "test_overrun.py::test_what_was_cut_back_twice_and_grows_all_the_same": IN_VAIN,
    "test_overrun.py::test_on_one_line_nobody_knows_and_a_flag_is_no_limit"
    "[if ready:\\n        kept.popitem()]": IN_VAIN,
    "test_removals_elsewhere.py::test_another_file_may_take_out_of_an_attribute"
    "[meter.kept_by_meter = meter.kept_by_meter - step-False]": "sets are subtracted like numbers",
    "test_uncalled.py::test_a_trim_that_nobody_calls_is_no_limit #2": (
        "what would call it is called by nobody"
    ),
    "test_conditions.py::test_a_condition_may_be_around_the_call_of_what_adds"
    "[if step < 500: log(x)\\n-False]": "no other way to the line that adds is known",
    f"{_REMOVALS}what_a_function_of_the_file_hands_back_may_be_all_of_it"
    "[return rows if rows else None-False]": "it is None only where there was nothing",
    f"{_CUTS}what_a_library_limits_is_no_limit_of_what_is_joined_anew[frame.append(row)-True]": (
        "the class of the library is not among the files that are given"
    ),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.test)
def test_the_reader_and_the_engines_see_the_same_things_to_wait_for(case: Case):
    agreed = case.may_stop is bool(case.engines)

    assert agreed is (case.test not in OTHERWISE), case.outlooks


def test_each_answer_that_is_another_is_of_a_source_that_there_is():
    assert OTHERWISE.keys() <= {case.test for case in CASES}


def test_most_answers_are_the_same():
    assert (len(CASES), len(OTHERWISE)) == (553, 45)
