from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

LEAKY_STEP = """
    import pytest
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step():
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss
"""


def test_a_leak_in_a_local_of_the_test_fails_it_in_under_ten_lines(
    pytester: pytest.Pytester, runpytest
):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    @pytest.mark.leakcheck
    def test_training(leak_sentinel):
        total = 0.0
        for _ in leak_sentinel.watch(range(200)):
            total += train_step()
    """
    )

    result = runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "leakcheck: growing: 1 leak in * steps of *.py::test_training",
            "  graph: * Nodes a step*",
            "    line: *:*total += train_step()",
            "    held by: local `total` in test_training()*",
            "    fix: * (undetached-accumulator)",
        ]
    )
    text = result.stdout.str()
    told = text[text.index("leakcheck: growing") : text.index("short test summary")]
    assert len(told.strip().splitlines()) < 10


def test_the_same_loop_with_item_passes(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    @pytest.mark.leakcheck(steps=120)
    def test_training(leak_sentinel):
        total = 0.0
        for _ in leak_sentinel.watch(range(200)):
            total += train_step().item()
    """
    )

    runpytest("-W", "error").assert_outcomes(passed=1)


@pytest.mark.parametrize(("releases", "failed"), [("collector.losses = []", 0), ("pass", 1)])
def test_what_an_epoch_gathers_and_releases_is_no_leak_and_what_it_keeps_is(
    pytester: pytest.Pytester, runpytest, releases: str, failed: int
):
    pytester.makepyfile(
        LEAKY_STEP
        + f"""
    class Collector:
        def __init__(self):
            self.losses = []

    @pytest.mark.leakcheck
    def test_training(leak_sentinel):
        collector = Collector()
        for epoch in range(4):
            for _ in leak_sentinel.watch(range(300)):
                collector.losses.append(train_step().detach())
            {releases}
    """
    )

    result = runpytest()

    result.assert_outcomes(passed=1 - failed, failed=failed)
    holder = "    held by: attribute `Collector.losses`, from local `collector` in test_training()*"
    result.stdout.fnmatch_lines([holder] * failed)


def test_the_marker_alone_counts_optimizer_steps(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    losses = []

    @pytest.mark.leakcheck
    def test_training():
        for _ in range(200):
            losses.append(train_step())
    """
    )

    result = runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["leakcheck: growing: 1 leak*", "*losses.append(train_step())"])


def test_the_option_watches_every_test_that_trains(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    def test_no_training():
        assert model is not None

    def test_leaky():
        kept = []
        for _ in range(200):
            kept.append(train_step())

    def test_clean():
        for _ in range(120):
            train_step()
    """
    )

    runpytest().assert_outcomes(passed=3)
    result = runpytest("--leakcheck")

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_leaky*"])


def test_repeat_stops_as_soon_as_the_verdict_is_certain(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    def test_training(leak_sentinel):
        calls = []
        kept = []
        def step():
            calls.append(1)
            kept.append(train_step())
        leak_sentinel.repeat(step, 5000)
        assert len(calls) < 1000
    """
    )

    result = runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*kept.append(train_step())*"])


def test_growth_within_the_sizes_stated_passes(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    kept = []

    @pytest.mark.leakcheck(max_host="1 MiB/step")
    def test_training(leak_sentinel):
        leak_sentinel.repeat(lambda: kept.append(train_step()), 200)
    """
    )

    runpytest().assert_outcomes(passed=1)


def test_too_few_steps_are_a_warning_or_a_failure_as_the_ini_says(
    pytester: pytest.Pytester, runpytest
):
    pytester.makepyfile("def test_short(leak_sentinel):\n    leak_sentinel.step()\n")

    warned = runpytest()
    failed = runpytest("-o", "leakcheck_unclear=fail")
    ignored = runpytest("-o", "leakcheck_unclear=ignore", "-W", "error")

    warned.assert_outcomes(passed=1, warnings=1)
    warned.stdout.fnmatch_lines(["*LeakcheckWarning: leakcheck: unclear: only 1 steps were seen*"])
    failed.assert_outcomes(failed=1)
    ignored.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('max_host="fast"', '*leakcheck: "fast" is not a size; write it as*'),
        ("max_hosts=1", '*leakcheck has no option "max_hosts"; it has max_host, max_device, *'),
        ("steps=0", "*leakcheck: steps and warmup must be whole numbers*"),
    ],
)
def test_a_wrong_marker_is_told_in_one_line(pytester: pytest.Pytester, runpytest, marker, message):
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.leakcheck({marker})\ndef test_it(leak_sentinel):\n    pass\n"
    )

    result = runpytest()

    assert result.ret != 0
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_a_failing_test_keeps_its_own_failure(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    def test_training(leak_sentinel):
        kept = []
        for _ in leak_sentinel.watch(range(150)):
            kept.append(train_step())
        assert 1 == 2
    """
    )

    result = runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*assert 1 == 2"])


def test_unittest_classes_and_parametrised_tests_are_watched(pytester: pytest.Pytester, runpytest):
    pytester.makepyfile(
        LEAKY_STEP
        + """
    import unittest

    class TestTraining(unittest.TestCase):
        @pytest.mark.leakcheck
        def test_leaky(self):
            kept = []
            for _ in range(200):
                kept.append(train_step())

    @pytest.mark.leakcheck
    @pytest.mark.parametrize("leaky", [True, False])
    def test_training(leaky):
        kept = []
        for _ in range(200):
            loss = train_step()
            kept.append(loss if leaky else loss.item())
    """
    )

    result = runpytest()

    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines_random(["FAILED *TestTraining::test_leaky*", "FAILED *[[]True*"])


def test_workers_of_xdist_judge_their_own_tests(pytester: pytest.Pytester, runpytest):
    pytest.importorskip("xdist")
    pytester.makepyfile(
        LEAKY_STEP
        + """
    def test_leaky(leak_sentinel):
        kept = []
        leak_sentinel.repeat(lambda: kept.append(train_step()), 200)

    def test_clean(leak_sentinel):
        leak_sentinel.repeat(train_step, 120)
    """
    )

    runpytest("-n", "2").assert_outcomes(passed=1, failed=1)


def test_an_async_test_is_watched_like_any_other(pytester: pytest.Pytester, runpytest):
    pytester.makeconftest(
        """
        import asyncio, inspect, pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            if inspect.iscoroutinefunction(pyfuncitem.obj):
                names = pyfuncitem._fixtureinfo.argnames
                values = {name: pyfuncitem.funcargs[name] for name in names}
                asyncio.run(pyfuncitem.obj(**values))
                return True
        """
    )
    pytester.makepyfile(
        LEAKY_STEP
        + """
    import asyncio

    async def test_training(leak_sentinel):
        kept = []
        for _ in leak_sentinel.watch(range(200)):
            await asyncio.sleep(0)
            kept.append(train_step())
    """
    )

    runpytest().assert_outcomes(failed=1)
