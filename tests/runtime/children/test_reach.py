"""Which forks are the program's own: those are watched from here, the others by who makes them."""

from __future__ import annotations

import subprocess
from multiprocessing import popen_fork

import pytest

from leakcheck.runtime.children.reach import Reach
from leakcheck.runtime.children.watch import ChildOrder

ORDER = ChildOrder("", "", "", "", 0, 1000, 1024, 64 << 20, 32 << 20)


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("train.py", ["fork 1", "fork 2"]),
        ("launcher/start.py", ["fork 1", "fork 2"]),
        (popen_fork.__file__, []),  # told of the child's process later
        (subprocess.__file__, []),  # with a `preexec_fn`, between the fork and the other program
        ("<string>", []),
    ],
)
def test_a_fork_is_the_program_s_unless_a_library_makes_it(file, names, monkeypatch):
    begun = []
    monkeypatch.setattr(
        "leakcheck.runtime.children.reach.begin_watch", lambda order, name: begun.append(name)
    )
    reach = Reach(ORDER)
    for _ in range(2):
        reach._begun_in = 0  # as in a child
        exec(compile("reach._note_fork()", file, "exec"), {"reach": reach})
        reach._begin_itself()

    assert begun == names
