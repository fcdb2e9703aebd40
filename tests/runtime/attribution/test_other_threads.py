"""While other threads run the user's code, a line must name what grows to be believed."""

from __future__ import annotations

import linecache
from collections import Counter

import pytest

from leakcheck.model import Holder
from leakcheck.runtime.attribution.other_threads import checked
from leakcheck.runtime.introspection.frames import Site
from tests.holders import held_by

SOURCE = """\
def work(self):
    while True:
        job = self.jobs.get()
        self.results.append(job)

loss.backward()
results.append(loss)
"""
PATH = "/nowhere/program.py"
linecache.cache[PATH] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), PATH)
namespace: dict = {}
exec(compile(SOURCE.partition("loss")[0], PATH, "exec"), namespace)
WORK = namespace["work"].__code__
HOLDER = held_by("attribute `Evaluation.results`, from local `self` in work()")


def test_a_line_that_names_the_container_is_believed():
    lines = Counter({Site(PATH, 6, "main"): 3, Site(PATH, 7, "main"): 9})

    assert checked(lines, HOLDER, [WORK]) == {Site(PATH, 7, "main"): 9}


def test_the_line_of_another_thread_that_adds_to_it_is_named_instead_of_what_ran_meanwhile():
    assert list(checked(Counter({Site(PATH, 6, "main"): 9}), HOLDER, [WORK])) == [
        Site(PATH, 4, "work")
    ]


def test_no_line_is_named_where_none_is_known():
    assert not checked(Counter({Site(PATH, 6, "main"): 9}), HOLDER, [])


def test_a_holder_without_a_name_leaves_the_lines_as_they_are():
    lines = Counter({Site(PATH, 6, "main"): 9})

    assert checked(lines, held_by("held outside Python"), [WORK]) == lines


def test_a_line_that_names_what_holds_the_container_is_believed():
    lines = Counter({Site(PATH, 3, "work"): 3, Site(PATH, 6, "main"): 9})
    edges = ("local `self` in work()", ".jobs", ".queue", "[x]")

    held = held_by("attribute `Queue.queue`, from local `self` in work()")
    assert checked(lines, held, [], edges) == {Site(PATH, 3, "work"): 3}


def codes_of(source: str) -> list:
    path = f"/nowhere/{abs(hash(source))}.py"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    names: dict = {}
    exec(compile(source, path, "exec"), names)
    return [names["consume"].__code__]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("seen[n] = q.get(); n += 1", 4),
        ("seen.append(q.get())", 4),
        ("print(seen[n])", None),
        ("seen[n] = n; others.append(n)", 4),
        ("seen[n] = n\n        others.append(n)", None),  # which of the two is not known
    ],
)
def test_what_nothing_refers_to_is_added_to_by_the_only_line_that_adds_to_a_variable(body, line):
    codes = codes_of(
        f"def consume(q):\n    seen, others, n = [], [], 0\n    while True:\n        {body}\n"
    )
    lines = Counter({Site(PATH, 6, "main"): 9})
    found = checked(lines, Holder("outside", function="consume()"), codes)

    assert [site.line for site in found] == ([] if line is None else [line])
