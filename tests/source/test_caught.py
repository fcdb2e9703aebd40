"""Would the program catch what is to end it? By the handlers around the lines that run."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.source.conditions import is_caught_at
from leakcheck.source.tree import File

TEXT = """
def one():
    for x in data:
        try:
            step(x)  # here
{handlers}
"""
CAUGHT = {
    "bare": ("except:\n    count += 1", True),
    "of everything": ("except BaseException as error:\n    print(error)", True),
    "of exits": ("except (KeyboardInterrupt, SystemExit):\n    pass", True),
    "of errors": ("except Exception:\n    count += 1", False),
    "raised again": ("except BaseException:\n    save()\n    raise", False),
    "exits raised first": (
        "except (KeyboardInterrupt, SystemExit):\n    raise\nexcept BaseException:\n    pass",
        False,
    ),
    "at the end": ("finally:\n    save()", False),
}


@pytest.mark.parametrize(("handlers", "caught"), CAUGHT.values(), ids=CAUGHT)
def test_an_exit_is_caught_by_the_first_handler_that_is_for_it(handlers, caught):
    file = File("train.py", TEXT.format(handlers=textwrap.indent(handlers, " " * 8)))

    assert is_caught_at(file, 5) is caught
    assert not is_caught_at(file, 3)


def test_what_a_try_only_defines_is_not_called_in_it():
    source = "try:\n    def step(x):\n        x.sum()\nexcept BaseException:\n    step = None\n"

    assert not is_caught_at(File("train.py", source), 3)
