from __future__ import annotations

import gc
import os
import re
import threading
from array import array

import psutil
import pytest

from leakcheck.model import Reason, Report
from leakcheck.report.reasons import said
from leakcheck.runtime.guard import raised_by_handler
from leakcheck.runtime.readings.heap import heap_reader
from leakcheck.runtime.sentinel import Sentinel


def keep(kept: list[bytearray]) -> None:
    kept.append(bytearray(4000))


def watched(steps: int, body, **options: object) -> Report:
    with Sentinel(**options) as sentinel:  # type: ignore[arg-type]
        for _ in range(steps):
            body()
            sentinel.step()
    return sentinel.report()


def test_a_loop_that_keeps_what_it_makes_is_growing():
    kept: list[bytearray] = []

    report = watched(600, lambda: keep(kept))

    growing = {trend.resource for trend in report.trends if trend.verdict == "growing"}
    assert (report.verdict, report.exit_code) == ("growing", 1)
    assert "host.heap" in growing
    (heap,) = (trend for trend in report.trends if trend.resource == "host.heap")
    assert heap.per_step == pytest.approx(4060, rel=0.1)


def test_a_loop_that_keeps_nothing_is_steady():
    report = watched(1200, lambda: bytearray(4000))

    assert (report.verdict, report.suspects, report.exit_code) == ("steady", (), 0)
    assert report.run is not None
    assert report.run.steps == 1200
    assert report.run.clock == "sentinel.step()"


class Bank:
    def __init__(self):
        self.kept, self.frozen = [], False

    def add(self):
        self.kept.append(bytearray(4000))
        if self.frozen:
            self.kept = self.kept[-100:]


@pytest.mark.parametrize(("frozen", "heap"), [(True, "steady"), (False, "unclear")])
def test_what_is_not_full_at_the_end_is_not_called_steady(frozen, heap):
    bank = Bank()
    bank.frozen = frozen

    report = watched(1200, bank.add)

    verdicts = {trend.resource: trend.verdict for trend in report.trends}
    assert (report.verdict, verdicts["host.heap"], verdicts["threads"]) == (heap, heap, "steady")


def test_a_bounded_buffer_that_filled_is_steady():
    kept: dict[int, bytearray] = {}
    count = iter(range(10**6))

    report = watched(1500, lambda: kept.update({next(count) % 150: bytearray(4000)}))

    assert report.verdict == "steady"


def test_a_log_of_floats_is_below_tolerance():
    log: list[float] = []

    report = watched(1200, lambda: log.append(float(len(log))))

    assert report.verdict == "steady"


def test_few_steps_are_no_verdict():
    report = watched(20, lambda: None)

    assert (report.verdict, report.exit_code) == ("unclear", 2)
    assert report.reason == Reason.of("too-few-steps", steps=20, needed=30)


def test_on_leak_is_called_once_with_the_report():
    heard: list[Report] = []
    kept: list[bytearray] = []

    watched(1500, lambda: keep(kept), on_leak=heard.append)

    assert [report.verdict for report in heard] == ["growing"]


def test_an_exception_of_the_callback_is_the_programs_own():
    kept: list[bytearray] = []

    def stop(report: Report) -> None:
        raise KeyError("stop training")

    with pytest.raises(KeyError, match="stop training"):
        watched(1500, lambda: keep(kept), on_leak=stop)


def test_what_fails_inside_the_sentinel_does_not_reach_the_program(monkeypatch):
    sentinel = Sentinel().start()
    monkeypatch.setattr(sentinel._watch, "read", lambda step: 1 / 0)

    sentinel.step()

    assert sentinel.report().verdict == "unclear"
    told = "leakcheck failed and stopped watching: ZeroDivisionError: division by zero"
    assert said(sentinel.report().reason).startswith(told)


def test_an_error_of_ours_at_the_address_of_one_that_was_raised_anew_is_kept(monkeypatch):
    error = ZeroDivisionError("of ours")
    raised_by_handler(error)  # as if that one had been there, and were gone
    sentinel = Sentinel().start()

    def read(step: int) -> int:
        raise error

    monkeypatch.setattr(sentinel._watch, "read", read)
    sentinel.step()

    told = "leakcheck failed and stopped watching: ZeroDivisionError: of ours"
    assert said(sentinel.report().reason).startswith(told)


def test_what_goes_wrong_in_the_conclusion_is_told_and_not_raised(monkeypatch):
    monkeypatch.setattr("leakcheck.runtime.sentinel.conclude", lambda *_: 1 / 0)

    report = watched(40, lambda: None)

    assert report.verdict == "unclear"
    told = "leakcheck failed, and no report could be made: ZeroDivisionError: division by zero"
    assert said(report.reason).startswith(told)


def test_several_sentinels_watch_at_once():
    with Sentinel() as outer, Sentinel() as inner:
        for step in range(400):
            inner.step()
            if step % 4 == 0:
                outer.step()

    assert (outer.report().run.steps, inner.report().run.steps) == (100, 400)  # type: ignore[union-attr]


def test_steps_may_come_from_many_threads():
    sentinel = Sentinel().start()

    def work() -> None:
        for _ in range(200):
            sentinel.step()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sentinel.stop()

    assert sentinel.report().run.steps == 800  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_not_counted():
    sentinel = Sentinel().start()
    sentinel.step()

    child = os.fork()
    if child == 0:
        sentinel.step()
        os._exit(0 if len(sentinel._watch.quick) == 1 else 1)  # type: ignore[union-attr]

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    sentinel.stop()


@pytest.mark.skipif(heap_reader() is None, reason="needs a libc that tells its heap")
def test_the_sentinels_own_memory_is_flat_over_many_steps():
    heap = heap_reader()
    assert heap is not None
    sentinel = Sentinel(steps=10**9).start()
    levels = array("q", bytes(8 * 4))
    for quarter in range(4):
        for _ in range(25_000):
            sentinel.step()
        levels[quarter] = heap()
    sentinel.stop()

    assert levels[3] - levels[1] < 50_000  # a byte a step


def test_stopping_gives_descriptors_and_callbacks_back():
    before = psutil.Process().num_fds()

    for _ in range(5):
        watched(50, lambda: None)

    assert psutil.Process().num_fds() == before


def test_a_sentinel_that_is_started_again_watches_the_next_loop():
    sentinel, kept = Sentinel(), []  # type: ignore[var-annotated]
    verdicts = []
    for body in (lambda: bytearray(4000), lambda: keep(kept), lambda: bytearray(4000)):
        with sentinel:
            for _ in range(1200):
                body()
                sentinel.step()
        verdicts.append((sentinel.report().verdict, sentinel.report().run.steps))

    assert verdicts == [("steady", 1200), ("growing", 1200), ("steady", 1200)]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"steps": "many"}, "Sentinel(steps='many'): a whole number is needed"),
        ({"steps": 0}, "Sentinel(steps=0): at least 1 is needed"),
        ({"tolerance_bytes": "1 KiB"}, "Sentinel(tolerance_bytes='1 KiB'): a whole number is"),
        ({"on_leak": 3}, "Sentinel(on_leak=3): a function of the report is needed"),
    ],
)
def test_an_argument_that_is_none_is_refused_where_it_is_given(options, error):
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        Sentinel(**options)


def test_after_the_end_a_clock_begins_nothing_anew():
    sentinel = Sentinel().start()
    sentinel.step()
    sentinel.stop()
    report = sentinel.report()

    sentinel.restart("optimizer step", trusted=True)
    sentinel.step()

    assert sentinel.report() is report


class Context:
    def __init__(self) -> None:
        self.me, self.data = self, bytearray(8000)


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_cycles_that_only_the_sentinel_collects_are_not_called_harmless(no_collector):
    report = watched(1500, Context)

    assert (report.verdict, report.reason) == (
        "unclear",
        Reason("cycles-pile-up"),
    )
    (notice,) = report.notices
    assert notice.reason.code == "cycles-freed-by-us"
    (kind,) = notice.reason.get("kinds").get("kinds")
    assert re.fullmatch(r"Context \(.*test_sentinel\.py:\d+\)", kind)


def test_cycles_that_a_program_collects_by_hand_are_its_own_affair(no_collector):
    made = []

    def step() -> None:
        Context()
        made.append(0)
        if len(made) % 100 == 0:
            gc.collect()

    report = watched(1500, step)

    assert report.verdict == "steady", report.reason
    assert all(notice.reason.code != "cycles-freed-by-us" for notice in report.notices)
