"""Objects that stand for processes, threads or files are told as these, and each leak once."""

from __future__ import annotations

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.runtime.counted import as_counted

HELD_AT, OPENED_AT = Place("a.py", 12, "files.append(f)"), Place("a.py", 11, "f = open(path)")
BOUND = "bound the container (deque(maxlen=...)) or clear it when it has been used"
CLOSE = "close each when it has been used: a with block, or .close()"
WAIT = "wait for each child to end (.wait() or .join()), or use a pool of a fixed size"
FILES = Suspect("descriptors", "files or sockets", 0.2, locations=(OPENED_AT,), fix=CLOSE)


def held(what: str) -> Suspect:
    """Return the suspect of objects that a global holds."""
    return Suspect("object", what, 0.21, 500.0, "global `kept`", locations=(HELD_AT,), fix=BOUND)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("list of Popen", "processes"),
        ("list of ForkProcess", "processes"),
        ("set of Thread", "threads"),
        ("ThreadPoolExecutor", "threads"),
        ("dict of TextIOWrapper", "descriptors"),
        ("deque of socket", "descriptors"),
    ],
)
def test_objects_that_stand_for_what_grows_are_told_as_that(what, kind):
    (told,) = as_counted([held(what)], {"python.blocks": 3.0, kind: 0.2})

    assert (told.kind, told.what, told.holder) == (kind, what, "global `kept`")
    assert told.fix not in ("", BOUND)


def test_they_stay_objects_when_only_objects_grow():
    suspects = (held("list of Popen"), held("dict of TextIOWrapper"))

    assert as_counted(suspects, {"python.blocks": 3.0, "threads": 1.0}) == suspects


def test_other_objects_stay_objects_beside_files_that_pile_up():
    suspects = (FILES, held("list of Record"))

    assert as_counted(suspects, {"python.blocks": 3.0, "descriptors": 0.2}) == suspects


def test_the_line_that_opens_files_and_what_holds_them_are_one_leak():
    told = as_counted([FILES, held("dict of TextIOWrapper")], {"descriptors": 0.2})

    assert told == (
        Suspect(
            "descriptors",
            "dict of TextIOWrapper",
            0.2,
            500.0,
            "global `kept`",
            locations=(OPENED_AT, HELD_AT),
            fix=CLOSE,
        ),
    )


def test_two_descriptors_for_each_child_are_the_children_s():
    told = as_counted([FILES], {"descriptors": 0.2, "processes": 0.1})

    what = "child processes that are started and never end"
    assert told == (Suspect("processes", what, 0.1, locations=(OPENED_AT,), fix=WAIT),)


def test_descriptors_that_are_not_as_many_as_children_would_have_are_files():
    assert as_counted([FILES], {"descriptors": 0.2, "processes": 0.13}) == (FILES,)
