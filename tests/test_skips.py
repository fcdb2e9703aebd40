"""What `pytest --strict-skips` makes of tests that are skipped."""

from __future__ import annotations

from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_python")

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")
TESTS = """
import pytest

def test_passes():
    pass

def test_of_a_gpu():
    pytest.skip("no CUDA device")

@pytest.mark.xfail(strict=True)
def test_that_is_known_to_fail():
    assert False
"""
BROWSER = """
import pytest

def test_in_a_browser():
    pytest.skip("chromium and chromedriver are not installed")
"""
MODULE = """
import pytest

pytest.importorskip("a_module_that_is_nowhere")
"""


@pytest.fixture
def finished(pytester: pytest.Pytester):
    """Run a few tests with our conftest; returns the exit status and what was said of skips."""

    def finished(*options: str, **modules: str) -> tuple[int, list[str]]:
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(**modules)
        done = pytester.runpytest_subprocess(*options, "-p", "no:leakcheck", "-p", "no:warnings")
        after = dropwhile(lambda line: not line.startswith("unexpected skips"), done.outlines)
        return done.ret, [*takewhile(lambda line: line and line[0] != "=", after)]

    return finished


def test_skips_by_the_nature_of_the_machine_are_expected(finished):
    assert finished("--strict-skips", test_a=TESTS) == (0, ["unexpected skips: 0"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_what_is_not_installed_fails_the_run_with_its_reason(finished, workers):
    if workers:
        pytest.importorskip("xdist")
    status, told = finished("--strict-skips", *workers, test_a=TESTS, test_b=BROWSER, test_c=MODULE)

    assert status == 1
    assert sorted(line.partition(":")[0] for line in told) == [
        "  1 x chromium and chromedriver are not installed",
        "  1 x could not import 'a_module_that_is_nowhere'",
        "unexpected skips",
    ]


def test_what_could_not_be_installed_may_be_lacking(finished):
    options = ("--strict-skips", "--may-lack", "chromium")

    assert finished(*options, test_b=BROWSER) == (0, ["unexpected skips: 0"])
    assert finished(*options[:2], "jemalloc", test_b=BROWSER)[0] == 1


def test_without_the_option_skips_are_only_skips(finished):
    assert finished(test_b=BROWSER, test_c=MODULE) == (0, [])
