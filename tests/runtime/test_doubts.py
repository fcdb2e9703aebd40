"""For how many more steps all that grows must go on: each row of the table, and their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leakcheck.runtime.doubts import DOUBTS, Doubt, row_for

FITTING = {
    "new-shapes": (Doubt(of_shapes=True), 1100),
    "uneven": (Doubt(uneven=True), 1100),
    "mostly-found": (Doubt(mostly_found=True), 2000),
    "only-what-is-new": (Doubt(memo=True), 700),
    "nothing-found-on-host": (Doubt(found=False, on_host=True), 700),
    "nothing-found": (Doubt(found=False), 200),
    "held-by-nothing-known": (Doubt(held_by_nothing=True), 200),
    "found-by-key": (Doubt(may_fill=True), 150),
    "no-doubt": (Doubt(on_host=True), 0),
}


def test_each_row_has_evidence_that_fits_it_first():
    decided = {
        code: next(row.code for row in DOUBTS if row.fits(doubt))
        for code, (doubt, _) in FITTING.items()
    }

    assert decided == {row.code: row.code for row in DOUBTS}


@pytest.mark.parametrize(("doubt", "steps"), FITTING.values(), ids=FITTING)
def test_it_is_looked_at_for_as_long_as_its_row_says(doubt, steps):
    assert row_for(doubt).steps == steps


def test_what_comes_first_in_the_table_decides():
    everything = Doubt(
        of_shapes=True, mostly_found=True, memo=True, held_by_nothing=True, may_fill=True
    )

    assert row_for(everything).steps == 1100
    assert row_for(replace(everything, of_shapes=False)).steps == 2000
    assert row_for(replace(everything, of_shapes=False, mostly_found=False)).steps == 700


def test_the_end_of_a_run_settles_no_cache_that_may_be_full_at_any_time():
    assert [row.code for row in DOUBTS if not row.settles] == [
        "new-shapes",
        "uneven",
        "mostly-found",
    ]
