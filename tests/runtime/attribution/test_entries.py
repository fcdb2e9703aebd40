from __future__ import annotations

import pytest

from leakcheck.model import Entries, Holder, Place, Suspect
from leakcheck.runtime.attribution.entries import entries_of

SOURCE = """\
class RequestStates:
    def __init__(self):
        self.states = {}

    def register(self, key):
        self.states[key] = object()

    def finish(self, key):
        del self.states[key]

    def reject(self, key):
        self.states.pop(key, None)

    def size(self):
        return len(self.states)
"""
HELD = Holder("attribute", "states", "RequestStates")


@pytest.fixture
def suspect(tmp_path):
    path = tmp_path / "engine.py"
    path.write_text(SOURCE)
    place = Place(str(path), 6, "self.states[key] = object()", 1.0, "register")
    return Suspect("object", "dict of object", 0.4, 100.0, HELD, None, (place,))


def test_the_functions_that_add_and_remove_are_told(suspect):
    expected = Entries(HELD, ("register",), ("finish", "reject"), 0.2)

    assert entries_of([suspect], requests_per_step=2.0) == (expected,)


def test_what_has_no_count_of_entries_is_left_out(suspect):
    extended = Suspect("object", "bytearray", None, 10.0, HELD, None, suspect.locations)

    assert entries_of([extended], 1.0) == ()
