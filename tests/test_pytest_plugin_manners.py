from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

LEAKY_LISTS = """
    import pytest

    def leak(sentinel):
        kept = []
        for _ in sentinel.watch(range(400)):
            kept.append(bytearray(10_000))
"""


def test_a_program_without_torch_is_watched_all_the_same(pytester: pytest.Pytester):
    pytester.makeconftest("import sys\nsys.modules['torch'] = None\n")
    pytester.makepyfile(
        LEAKY_LISTS + "\n    def test_it(leak_sentinel):\n        leak(leak_sentinel)\n"
    )

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*line: *kept.append(bytearray(10_000))"])


def test_the_option_says_nothing_of_tests_that_do_not_train(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile("def test_sum():\n    assert 1 + 1 == 2\n")

    result = runpytest("--leakcheck", "-W", "error")

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*leakcheck:*")


def test_a_doctest_is_run_as_ever_under_the_option(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        'def twice(x):\n    """\n    >>> twice(2)\n    4\n    """\n    return 2 * x\n'
    )

    result = runpytest("--leakcheck", "--doctest-modules", "-W", "error")

    result.assert_outcomes(passed=1)


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester):
    pytester.makepyfile("def test_sum(request):\n    assert 1 + 1 == 2\n")

    result = pytester.runpytest_subprocess("-p", "no:leakcheck", "--fixtures")

    assert result.ret == 0
    result.stdout.no_fnmatch_line("*leak_sentinel*")


def test_pytest_starts_without_torch_libcst_and_the_sentinel(pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            ours = {name for name in sys.modules if name.startswith("leakcheck.")}
            ours -= {"leakcheck.pytest_plugin", "leakcheck.pytest_watch", "leakcheck.units"}
            assert not ours
            assert not {"torch", "libcst", "psutil"} & set(sys.modules)
        """
    )

    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_pytest_inside_a_watched_test_has_its_own_watch(pytester: pytest.Pytester):
    pytester.makeconftest("pytest_plugins = ['pytester']\n")
    inner = LEAKY_LISTS + "\n    def test_it(leak_sentinel):\n        leak(leak_sentinel)\n"
    pytester.makepyfile(
        f"""
        INNER = {inner!r}

        def test_outer(pytester, leak_sentinel):
            pytester.makepyfile(INNER)
            pytester.runpytest_inprocess("--leakcheck").assert_outcomes(failed=1)
        """
    )

    pytester.runpytest_subprocess("--leakcheck").assert_outcomes(passed=1, warnings=1)


def test_a_test_that_raises_midway_keeps_its_own_error(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        """
        def test_it(leak_sentinel):
            for number in leak_sentinel.watch(range(9)):
                1 / (number - 4)
        """
    )

    result = runpytest("-W", "error")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*ZeroDivisionError: division by zero"])
