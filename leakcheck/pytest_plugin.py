"""The pytest plugin: tests that train are watched, and a test whose loop leaks fails.

    @pytest.mark.leakcheck(max_host="4 KiB/step")
    def test_training(leak_sentinel):
        for batch in leak_sentinel.watch(loader):
            train(batch)

The marker alone, or `--leakcheck` for every test, watches each step of an optimizer. At pytest's
start neither torch nor libcst nor the sentinel is imported.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from leakcheck.model import Report
    from leakcheck.runtime.clock.steps import StepClock
    from leakcheck.runtime.sentinel import Sentinel

Item = TypeVar("Item")
MARKER = (
    "leakcheck(max_host=None, max_device=None, steps=None, warmup=0): watch the test's training "
    'steps; fail if memory grows, or grows faster than the sizes given ("4 KiB/step")'
)
UNCLEAR = ("warn", "fail", "ignore")
DEFAULT_STEPS = 300


class LeakcheckWarning(pytest.PytestWarning):
    """A watched test whose verdict is unclear, e.g. because it made too few steps."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one test allows: bytes a step on host and device (None: no leak at all), and steps."""

    max_host_bytes: int | None = None
    max_device_bytes: int | None = None
    steps: int = DEFAULT_STEPS
    warmup: int = 0


class LeakSentinel:
    """The fixture's value: put it round the loop of the test in one of three ways."""

    def __init__(self, settings: Settings) -> None:
        from leakcheck.runtime.sentinel import Sentinel

        self._settings = settings
        self._sentinel: Sentinel = Sentinel(steps=settings.steps)
        self._warmup_left = settings.warmup

    def watch(self, loop: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of `loop`, each a step; judged at its end, while all is still alive.

        Called again, as in every epoch, it goes on with the steps of before, and what the epoch
        before released is no leak.
        """
        from leakcheck.runtime.attribution.loops import loops_around

        around = list(loops_around(sys._getframe(1)))
        self._sentinel.loop_begins(around)
        for item in loop:
            yield item
            del item
            self.step()
        if not around:
            self._sentinel.pause()

    def step(self) -> None:
        """Note that a step is over."""
        if self._warmup_left > 0:
            self._warmup_left -= 1
            return
        self._sentinel.step()

    def repeat(self, function: Callable[[], object], times: int | None = None) -> None:
        """Call `function` as one step, `times` times; stops when the verdict is certain."""
        for _ in range(times or self._settings.steps + self._settings.warmup):
            function()
            self.step()
            if self._sentinel.certain:
                break
        self._sentinel.stop()

    def report(self) -> Report:
        """Return what is known now."""
        return self._sentinel.report()

    def stop(self) -> Report:
        """End the watch and return its report; it never raises, whatever goes wrong in here."""
        from leakcheck.model import Report

        if self._sentinel.state[0] == 0:
            return Report(verdict="unclear", reason="no steps seen")
        try:
            self._sentinel.stop()
            return self._sentinel.report()
        except Exception as error:
            reason = f"leakcheck failed: {type(error).__name__}: {error}"
            return Report(verdict="unclear", reason=reason)


class _OptimizerSteps:
    """torch's global optimizer hook, handed on to the clock of the test that runs now."""

    def __init__(self) -> None:
        self._hooked = False
        self._clock: StepClock | None = None

    def count_for(self, sentinel: Sentinel) -> None:
        from leakcheck.runtime.clock.optimizers import hook_optimizers
        from leakcheck.runtime.clock.steps import StepClock

        if not self._hooked:
            hook_optimizers(self._stepped)
            self._hooked = True
        self._clock = StepClock(sentinel, lambda: None)

    def stop(self) -> None:
        self._clock = None

    def _stepped(self, *arguments: object) -> None:
        if self._clock is not None:
            self._clock.optimizer_stepped(*arguments)


_WATCHER = pytest.StashKey[LeakSentinel]()
_STEPS = pytest.StashKey[_OptimizerSteps]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --leakcheck and the ini keys."""
    group = parser.getgroup("leakcheck", "memory leaks in PyTorch code")
    group.addoption(
        "--leakcheck", action="store_true", help="watch the optimizer steps of every test"
    )
    parser.addini(
        "leakcheck_steps", "settled steps after which a test counts as steady", default=""
    )
    parser.addini(
        "leakcheck_warmup", "steps at the start of a test that are not judged", default=""
    )
    parser.addini("leakcheck_max_host", "growth of host memory a step to allow", default="")
    parser.addini("leakcheck_max_device", "growth of device memory a step to allow", default="")
    parser.addini(
        "leakcheck_unclear", "warn, fail or ignore when the verdict is unclear", default="warn"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and check the ini keys."""
    config.addinivalue_line("markers", MARKER)
    if config.getini("leakcheck_unclear") not in UNCLEAR:
        told = config.getini("leakcheck_unclear")
        raise pytest.UsageError(f'leakcheck_unclear is one of {", ".join(UNCLEAR)}, not "{told}"')
    config.stash[_STEPS] = _OptimizerSteps()
    _settings_of(config, {}, "the ini file")


@pytest.fixture
def leak_sentinel(request: pytest.FixtureRequest) -> LeakSentinel:
    """Watch the test's own loop; the test fails at its end if the loop leaks."""
    sentinel = LeakSentinel(_settings_of_item(request.node))
    request.node.stash[_WATCHER] = sentinel
    return sentinel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run the test under watch, and fail it if it passed and leaks."""
    marked = item.get_closest_marker("leakcheck") is not None
    steps = item.config.stash[_STEPS]
    watcher = item.stash.get(_WATCHER, None)
    by_optimizer = watcher is None and (marked or item.config.getoption("--leakcheck"))
    if by_optimizer:
        watcher = LeakSentinel(_settings_of_item(item))
        steps.count_for(watcher._sentinel)
    try:
        result = yield
    finally:
        steps.stop()
        report = watcher.stop() if watcher is not None else None
    if report is not None:
        _judge(item, report, told_to=marked or not by_optimizer)
    return result


def _judge(item: pytest.Item, report: Report, *, told_to: bool) -> None:
    from leakcheck.proof import proved
    from leakcheck.report.brief import render

    item.user_properties.append(("leakcheck", report.verdict))
    if report.verdict == "growing" and not _allowed(report, _settings_of_item(item)):
        pytest.fail(render(_named(proved(report), item.nodeid)), pytrace=False)
    if report.verdict != "unclear" or not told_to:
        return
    message = f"leakcheck: unclear: {report.reason}"
    if item.config.getini("leakcheck_unclear") == "fail":
        pytest.fail(message, pytrace=False)
    if item.config.getini("leakcheck_unclear") == "warn":
        warnings.warn(LeakcheckWarning(message), stacklevel=1)


def _named(report: Report, test: str) -> Report:
    """Say the test in place of the whole command line of pytest."""
    run = report.run and replace(report.run, command=test)
    return replace(report, run=run)


def _allowed(report: Report, settings: Settings) -> bool:
    """Say whether what grows stays within the sizes that the test states."""
    host = device = 0.0
    for trend in report.trends:
        if trend.verdict != "growing":
            continue
        if trend.resource == "host.heap":
            host = max(host, trend.per_step)
        elif trend.resource.endswith(".allocated"):
            device = max(device, trend.per_step)
    if settings.max_host_bytes is None:
        return False
    return host <= settings.max_host_bytes and device <= (settings.max_device_bytes or 0)


def _settings_of_item(item: pytest.Item) -> Settings:
    marker = item.get_closest_marker("leakcheck")
    options = dict(marker.kwargs) if marker is not None else {}
    try:
        if marker is not None and marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker leakcheck takes keywords only")
        return _settings_of(item.config, options, item.nodeid)
    except pytest.UsageError as error:  # within a test it would be told with a traceback of ours
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _settings_of(config: pytest.Config, options: dict[str, object], where: str) -> Settings:
    from leakcheck.units import parse_size_bytes

    names = ("max_host", "max_device", "steps", "warmup")
    for name in options:
        if name not in names:
            known = ", ".join(names)
            raise pytest.UsageError(f'{where}: leakcheck has no option "{name}"; it has {known}')
    values = {name: options.get(name, config.getini(f"leakcheck_{name}") or None) for name in names}
    try:
        sizes = [
            None if values[name] is None else parse_size_bytes(str(values[name]))
            for name in names[:2]
        ]
        steps = int(str(DEFAULT_STEPS if values["steps"] is None else values["steps"]))
        warmup = int(str(0 if values["warmup"] is None else values["warmup"]))
    except ValueError as error:
        raise pytest.UsageError(f"{where}: leakcheck: {error}") from None
    if steps < 1 or warmup < 0:
        raise pytest.UsageError(f"{where}: leakcheck: steps and warmup must be whole numbers")
    return Settings(sizes[0], sizes[1], steps, warmup)
