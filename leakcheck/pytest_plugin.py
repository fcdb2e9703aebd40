"""The pytest plugin: tests that train are watched, and a test whose loop leaks fails.

    @pytest.mark.leakcheck(max_host="4 KiB/step")
    def test_training(leak_sentinel):
        for batch in leak_sentinel.watch(loader):
            train(batch)

The marker alone, or `--leakcheck` for every test, watches each step of an optimizer, those in the
set-up and the tear-down of fixtures too. What leaks there is an error of that phase; what fails for
itself keeps its failure, and is told its leak beside it. At pytest's start neither torch nor libcst
nor the sentinel is imported.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from leakcheck.pytest_watch import DEFAULT_STEPS, LeakSentinel, LimitsOfTest, Phases, WatchedTest

if TYPE_CHECKING:
    from leakcheck.model import Reason, Report
    from leakcheck.pytest_fix import Unwatched
    from leakcheck.released import Expectation

MARKER = (
    "leakcheck(max_host=None, max_device=None, steps=None, warmup=0): watch the test's training "
    'steps; fail if memory grows, or grows faster than the sizes given ("4 KiB/step")'
)
UNCLEAR = ("warn", "fail", "ignore")
SET_UP, TEAR_DOWN = "the set-up", "the tear-down"


class LeakcheckWarning(pytest.PytestWarning):
    """A watched test whose verdict is unclear, e.g. because it made too few steps."""


_WATCHER = pytest.StashKey[LeakSentinel]()
_PHASES = pytest.StashKey[Phases]()
_EXPECTED = pytest.StashKey["Expectation"]()
_OF_CLASS = re.compile(r"_(?:unittest|xunit)_\w+?_fixture_(.+)")  # what pytest makes of setUpClass


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --leakcheck and the ini keys."""
    group = parser.getgroup("leakcheck", "memory leaks in PyTorch code")
    group.addoption(
        "--leakcheck", action="store_true", help="watch the optimizer steps of every test"
    )
    group.addoption(
        "--leakcheck-fix",
        action="store_true",
        help="run a test that leaks again with edits, and tell the one that is proved",
    )
    group.addoption("--leakcheck-trial", action="store_true", help=argparse.SUPPRESS)
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
    config.stash[_PHASES] = Phases()
    _settings_of(config, {}, "the ini file")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say nothing in a run that is made to try an edit."""
    if session.config.getoption("--leakcheck-trial"):
        from leakcheck.pytest_fix import say_nothing

        say_nothing(session.config)


@pytest.fixture
def leak_sentinel(request: pytest.FixtureRequest) -> LeakSentinel | Unwatched:
    """Watch the test's own loop; the test fails at its end if the loop leaks."""
    settings = _settings_of_item(request.node)
    if request.config.getoption("--leakcheck-trial"):
        from leakcheck.pytest_fix import Unwatched

        return Unwatched(settings.steps + settings.warmup)
    sentinel = LeakSentinel(settings)
    request.node.stash[_WATCHER] = sentinel
    return sentinel


@pytest.fixture
def expect_released(request: pytest.FixtureRequest) -> Callable[..., Expectation]:
    """Expect of the objects it is called with that nothing keeps them after the test."""
    from leakcheck.released import Expectation

    expected = request.node.stash[_EXPECTED] = Expectation()
    return expected.watch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Set the test up; an error if a fixture leaks meanwhile."""
    phases = _begun(item)
    result = yield
    _fail_for(phases)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run the test under watch, and fail it if it passed and leaks."""
    phases = _begun(item)
    with _watching(item):
        result = yield
    _fail_for(phases)
    _check_released(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Tear the test down; an error if a fixture leaks meanwhile."""
    phases = _begun(item)
    result = yield
    _fail_for(phases)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Watch a fixture's set-up, and later its tear-down."""
    item = request.config.stash[_PHASES].item
    if item is None or not (_is_watched(item) or _WATCHER in item.stash):
        return (yield)
    name = _name_of(fixturedef)
    tear_down = _watching(item, f"{TEAR_DOWN} of {name}")
    # finalizers run from the last to the first: the fixture's own are between these two
    begun: list[object] = []
    fixturedef.addfinalizer(lambda: tear_down.__exit__(None, None, None) if begun else None)
    with _watching(item, f"{SET_UP} of {name}"):
        result = yield
    fixturedef.addfinalizer(lambda: begun.append(tear_down.__enter__()))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell beside a failure of the test's own what it has leaked."""
    report = yield
    phases = item.config.stash[_PHASES]
    own = call.excinfo is not None and call.excinfo.value is not phases.failure
    if own and report.failed and phases.told:
        told = "\n\n".join(phases.told)
        add_section = getattr(report.longrepr, "addsection", None)
        if add_section is not None:
            add_section("leakcheck", told, "-")
        else:  # what has no traceback, as of pytest.fail
            report.longrepr = f"{report.longrepr}\n\n{told}"
    if own and hasattr(report, "wasxfail") and phases.leaked:
        _tell_of_expected_failure(report, "\n\n".join(phases.told))
    if report.failed and phases.leaked and item.config.getoption("--leakcheck-fix"):
        from leakcheck.pytest_fix import proved_edit

        told = proved_edit(item, _settings_of_item(item).steps)
        report.sections.append(("leakcheck fix", told))
    return report


def _tell_of_expected_failure(report: pytest.TestReport, told: str) -> None:
    """Warn of the leak of a test that failed as was expected; where warnings are errors, fail."""
    try:
        warnings.warn(LeakcheckWarning(f"an expected failure leaks:\n{told}"), stacklevel=1)
    except LeakcheckWarning as warning:
        report.outcome, report.longrepr = "failed", str(warning)
        del report.wasxfail


def _check_released(item: pytest.Item) -> None:
    """Fail a test that passed if it leaves alive what it said would be gone."""
    expected = item.stash.get(_EXPECTED, None)
    if expected is None:
        return
    from leakcheck.released import NotReleasedError

    try:
        expected.check()
    except NotReleasedError as error:
        told = str(error)
    else:
        return
    raise pytest.fail.Exception(told, pytrace=False)


def _begun(item: pytest.Item) -> Phases:
    phases = item.config.stash[_PHASES]
    phases.item, phases.told, phases.leaked, phases.failure = item, [], False, None
    return phases


def _fail_for(phases: Phases) -> None:
    if phases.told:
        phases.failure = pytest.fail.Exception("\n\n".join(phases.told), pytrace=False)
        raise phases.failure


@contextmanager
def _watching(item: pytest.Item, phase: str = "") -> Iterator[None]:
    """Watch what runs meanwhile and note what it leaks; `phase`: of a fixture, not the test."""
    phases = item.config.stash[_PHASES]
    counts = _is_watched(item) and (bool(phase) or _WATCHER not in item.stash)
    before = item.stash.get(_WATCHER, None) if phase else None
    within = before is not None and before.stepped  # a fixture that the test asked for in its loop
    watched = WatchedTest(
        lambda: None if within else item.stash.get(_WATCHER, None),
        _settings_for(item, phase) if counts else None,
    )
    if counts:
        phases.hook_optimizers()
    phases.watched.append(watched)
    failed = True
    try:
        yield
        failed = False
    finally:
        phases.watched.remove(watched)
        report = watched.end(cut_short=failed, goes_on=phase.startswith(SET_UP))
        if report is not None:
            _judge(item, report, phase, passed=not failed)
        elif not (phase or failed):
            _tell_unclear(item)


def _settings_for(item: pytest.Item, phase: str) -> LimitsOfTest | None:
    try:
        return _settings_of_item(item)
    except pytest.fail.Exception:  # a wrong marker is told once, by the test
        if phase:
            return None
        raise


def _is_watched(item: pytest.Item) -> bool:
    if item.config.getoption("--leakcheck-trial"):  # from outside
        return False
    return _is_marked(item) or bool(item.config.getoption("--leakcheck"))


def _is_marked(item: pytest.Item) -> bool:
    return item.get_closest_marker("leakcheck") is not None


def _name_of(fixture: pytest.FixtureDef[object]) -> str:
    of_class = _OF_CLASS.fullmatch(fixture.argname)
    return f"`{of_class[1]}`" if of_class else f"fixture `{fixture.argname}`"


def _judge(item: pytest.Item, report: Report, phase: str, *, passed: bool) -> None:
    """Note a leak, and of a test that passed also an unclear verdict that it asked for."""
    from leakcheck.proof import proved
    from leakcheck.report.brief import render

    phases = item.config.stash[_PHASES]
    grows = report.verdict == "growing"
    if grows or not phase:
        item.user_properties.append(("leakcheck", report.verdict))
    if grows and not _allowed(report, _settings_of_item(item)):
        phases.leaked = True
        phases.told.append(render(_named(proved(report), phase or item.nodeid)))
    if report.verdict == "unclear" and passed and not phase:
        _tell_unclear(item, report.reason)


def _tell_unclear(item: pytest.Item, reason: Reason | None = None) -> None:
    """Tell who asked for a verdict why there is none: by default because there was no step."""
    if not (_is_marked(item) or _WATCHER in item.stash):
        return
    if item.config.getoption("--leakcheck-trial"):
        return
    from leakcheck.model import Reason
    from leakcheck.report.reasons import said

    message = f"leakcheck: unclear: {said(reason or Reason('no-steps'))}"
    if item.config.getini("leakcheck_unclear") == "fail":
        item.config.stash[_PHASES].told.append(message)
    if item.config.getini("leakcheck_unclear") == "warn":
        warnings.warn(LeakcheckWarning(message), stacklevel=1)


def _named(report: Report, test: str) -> Report:
    """Say the test in place of the whole command line of pytest."""
    run = report.run and replace(report.run, command=test)
    return replace(report, run=run)


def _allowed(report: Report, settings: LimitsOfTest) -> bool:
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


def _settings_of_item(item: pytest.Item) -> LimitsOfTest:
    marker = item.get_closest_marker("leakcheck")
    options = dict(marker.kwargs) if marker is not None else {}
    try:
        if marker is not None and marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker leakcheck takes keywords only")
        return _settings_of(item.config, options, item.nodeid)
    except pytest.UsageError as error:  # within a test it would be told with a traceback of ours
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _settings_of(config: pytest.Config, options: dict[str, object], where: str) -> LimitsOfTest:
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
    return LimitsOfTest(sizes[0], sizes[1], steps, warmup)
