"""Leaks in the set-up and the tear-down of fixtures, and beside a failure of the test's own."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

pytest_plugins = ["pytester"]

TRAINING = """
    import unittest

    import pytest
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gathered = []

    def train(keep, watched=lambda: None):
        kept = []
        for _ in range(200):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8)).pow(2).mean()
            loss.backward()
            optimizer.step()
            kept.append(keep(loss))
            watched()
        return kept

    def leak(loss):
        return loss

    def clean(loss):
        return loss.item()
"""
IN_SET_UP = """
    @pytest.fixture(scope="{scope}")
    def leaky():
        return train(leak)

    @pytest.fixture(scope="{scope}")
    def fine():
        yield train(clean)

    def test_leaky(leaky):
        pass

    def test_fine(fine):
        pass
"""
IN_TEAR_DOWN = """
    @pytest.fixture(scope="{scope}")
    def fine():
        yield
        train(clean)

    @pytest.fixture(scope="{scope}")
    def leaky():
        yield
        gathered.extend(train(leak))

    def test_fine(fine):
        pass

    def test_leaky(leaky):
        pass
"""


@pytest.mark.parametrize("scope", ["function", "module", "session"])
def test_a_leak_in_the_set_up_of_a_fixture_is_an_error_of_the_set_up(pytester, runpytest, scope):
    pytester.makepyfile(TRAINING + IN_SET_UP.format(scope=scope))

    result = runpytest("--leakcheck", "-W", "error")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_leaky*",
            "leakcheck: growing: 1 leak in * steps of the set-up of fixture `leaky`",
            "  graph: * Nodes a step, * a step: *, id *",
            "    line: *:*kept.append(keep(loss))",
            "    held by: local `kept` in train()",
            "    fix: *",
            "ERROR *::test_leaky*",
        ]
    )


@pytest.mark.parametrize("scope", ["function", "module", "session"])
def test_a_leak_in_the_tear_down_of_a_fixture_is_an_error_of_the_tear_down(
    pytester, runpytest, scope
):
    pytester.makepyfile(TRAINING + IN_TEAR_DOWN.format(scope=scope))

    result = runpytest("--leakcheck", "-W", "error")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_leaky*",
            "leakcheck: growing: 1 leak in * steps of the tear-down of fixture `leaky`",
            "    line: *:*kept.append(keep(loss))",
            "ERROR *::test_leaky*",
        ]
    )
    result.stdout.no_fnmatch_line("*of fixture `fine`*")


def test_the_marker_watches_the_fixtures_of_its_test_and_no_others(pytester, runpytest):
    pytester.makepyfile(
        TRAINING
        + """
    @pytest.fixture
    def leaky():
        return train(leak)

    def test_unwatched(leaky):
        pass

    @pytest.mark.leakcheck
    def test_watched(leaky):
        train(clean)

    @pytest.mark.leakcheck(max_host="1 MiB/step")
    def test_allowed(leaky):
        train(clean)
    """
    )

    result = runpytest("-W", "error")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["ERROR *::test_watched*"])


def test_the_sentinel_of_the_test_watches_the_loops_of_its_fixtures(pytester, runpytest):
    pytester.makepyfile(
        TRAINING
        + """
    @pytest.fixture
    def set_up(leak_sentinel):
        return train(leak, leak_sentinel.step)

    @pytest.fixture
    def tear_down(leak_sentinel):
        yield
        train(leak, leak_sentinel.step)

    @pytest.fixture
    def fine(leak_sentinel):
        yield train(clean, leak_sentinel.step)
        train(clean, leak_sentinel.step)

    def test_set_up(set_up):
        pass

    def test_tear_down(tear_down, leak_sentinel):
        train(clean, leak_sentinel.step)

    def test_fine(fine):
        pass
    """
    )

    result = runpytest("-W", "error")

    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(
        [
            "leakcheck: growing: 1 leak in * steps of the set-up of fixture `set_up`",
            "leakcheck: growing: 1 leak in * steps of the tear-down of fixture `tear_down`",
        ]
    )


@pytest.mark.parametrize(
    ("options", "outcomes"), [((), {"xfailed": 2, "warnings": 1}), (("-W", "error"), None)]
)
def test_a_test_that_is_expected_to_fail_is_told_its_leak_too(
    pytester, runpytest, options, outcomes
):
    pytester.makepyfile(
        TRAINING
        + """
    @pytest.mark.xfail(reason="one day")
    def test_leaky():
        gathered.extend(train(leak))
        assert 1 == 2

    @pytest.mark.xfail(reason="one day")
    def test_fine():
        train(clean)
        assert 3 == 4
    """
    )

    result = runpytest("--leakcheck", *options)

    result.assert_outcomes(**(outcomes or {"xfailed": 1, "failed": 1}))
    assert "an expected failure leaks:" in result.stdout.str()
    result.stdout.fnmatch_lines(["*leakcheck: growing: 1 leak in * steps of *::test_leaky"])


@pytest.mark.parametrize("option", ["--tb=long", "--show-capture=no"])
def test_a_test_that_fails_for_itself_is_told_its_leak_too(pytester, runpytest, option):
    pytester.makepyfile(
        TRAINING
        + """
    def test_leaky():
        gathered.extend(train(leak))
        assert 1 == 2

    def test_fine():
        train(clean)
        assert 3 == 4

    def test_without_a_traceback():
        gathered.extend(train(leak))
        pytest.fail("for a reason", pytrace=False)

    class TestTraining(unittest.TestCase):
        def test_unittest(self):
            gathered.extend(train(leak))
            self.assertEqual(5, 6)
    """
    )

    result = runpytest("--leakcheck", "-W", "error", option)

    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "E*assert 1 == 2",
            "*- leakcheck -*",
            "leakcheck: growing: 1 leak in * steps of *::test_leaky",
            "E*assert 3 == 4",
            "for a reason",
            "leakcheck: growing: 1 leak in * steps of *::test_without_a_traceback",
            "E*AssertionError: 5 != 6",
            "leakcheck: growing: 1 leak in * steps of *::test_unittest",
            "FAILED *::test_leaky*",
            "FAILED *::test_fine*",
            "FAILED *::test_without_a_traceback*",
            "FAILED *::test_unittest*",
        ]
    )
    assert result.stdout.str().count("leakcheck: growing:") == 3


def test_a_fixture_that_fails_for_itself_keeps_its_error_beside_its_leak(pytester, runpytest):
    pytester.makepyfile(
        TRAINING
        + """
    @pytest.fixture
    def set_up():
        gathered.extend(train(leak))
        raise ValueError("of the set-up")

    @pytest.fixture
    def tear_down():
        yield
        gathered.extend(train(leak))
        raise ValueError("of the tear-down")

    def test_set_up(set_up):
        pass

    def test_tear_down(tear_down):
        pass
    """
    )

    result = runpytest("--leakcheck")

    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "E*ValueError: of the set-up",
            "leakcheck: growing: 1 leak in * steps of the set-up of fixture `set_up`",
            "E*ValueError: of the tear-down",
            "leakcheck: growing: 1 leak in * steps of the tear-down of fixture `tear_down`",
            "ERROR *::test_set_up*",
            "ERROR *::test_tear_down*",
        ]
    )


def test_what_classes_and_modules_set_up_is_told_by_their_names(pytester, runpytest):
    pytester.makepyfile(
        test_it=TRAINING
        + """
    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.kept = train(leak)

        def test_it(self):
            pass

    class TestPlain:
        def setup_method(self):
            train(clean)

        @classmethod
        def teardown_class(cls):
            cls.kept = train(leak)

        def test_it(self):
            pass
    """
    )

    result = runpytest("--leakcheck", "-W", "error")

    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "leakcheck: growing: 1 leak in * steps of the set-up of `TestUnit`",
            "leakcheck: growing: 1 leak in * steps of the tear-down of `TestPlain`",
        ]
    )


def test_a_fixture_asked_for_within_the_loop_of_a_test_has_its_own_watch(pytester, runpytest):
    pytester.makepyfile(
        TRAINING
        + """
    @pytest.fixture
    def leaky():
        return train(leak)

    def test_it(request):
        train(clean)
        request.getfixturevalue("leaky")
    """
    )

    result = runpytest("--leakcheck")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["leakcheck: growing: 1 leak in * steps of the set-up of fixture `leaky`"]
    )


def test_workers_of_xdist_tell_both_the_failure_and_the_leak(pytester, runpytest):
    pytest.importorskip("xdist")
    pytester.makepyfile(
        TRAINING
        + IN_SET_UP.format(scope="session")
        + """
    def test_failing():
        gathered.extend(train(leak))
        assert 1 == 2
    """
    )

    result = runpytest("--leakcheck", "-n", "2")

    result.assert_outcomes(passed=1, errors=1, failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "leakcheck: growing: 1 leak in * steps of the set-up of fixture `leaky`",
            "leakcheck: growing: 1 leak in * steps of *::test_failing",
            "FAILED *::test_failing*",
        ]
    )
