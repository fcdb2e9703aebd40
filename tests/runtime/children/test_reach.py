"""Which forks are the program's own: those are watched from here, the others by who makes them."""

from __future__ import annotations

import pytest

from leakcheck.runtime.children.order import ChildOrder
from leakcheck.runtime.children.reach import Reach

ORDER = ChildOrder("", "", "", "", 0, 1000, 1024, 64 << 20, 32 << 20)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("__main__", ["fork 1", "fork 2"]),
        ("launcher", ["fork 1", "fork 2"]),
        ("multiprocessing.popen_fork", []),  # told of the child's process later
        ("subprocess", []),  # with a `preexec_fn`, between the fork and the other program
        (None, []),
    ],
)
def test_a_fork_is_the_program_s_unless_a_library_makes_it(module, names, monkeypatch):
    begun = []
    monkeypatch.setattr(
        "leakcheck.runtime.children.reach.begin_watch", lambda order, name: begun.append(name)
    )
    reach = Reach(ORDER)
    for _ in range(2):
        reach._begun_in = 0  # as in a child
        exec("reach._note_fork()", {"__name__": module, "reach": reach})
        reach._begin_itself()

    assert begun == names
