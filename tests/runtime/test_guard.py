"""What goes wrong in leakcheck, wherever the program calls it, never reaches the program."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leakcheck.runtime.guard import ErrorGuard
from leakcheck.runtime.readings.collector import CollectorListener

# where each is called from: a loop, an optimizer, a collection of garbage, a line that is traced
FAILING = {
    "loop": "leakcheck.runtime.clock.steps.StepClock._is_other_thread",
    "optimizer": "leakcheck.runtime.clock.beside.Beside.makes_way",
    "collection": "leakcheck.runtime.readings.meters.GarbageMeter._begin",
    "line": "leakcheck.runtime.attribution.lines.LineTracer._line",
}
PROGRAM = """\
import importlib
import torch

module, kind, name = "{place}".rsplit(".", 2)
setattr(getattr(importlib.import_module(module), kind), name, lambda *_, **__: 1 / 0)
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(150):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    linked = [[{{}} for _ in range(100)]]
    linked.append(linked)
    kept.append(loss)
print(loss.item())
"""


@pytest.mark.parametrize("place", FAILING.values(), ids=FAILING)
def test_the_program_runs_on_where_leakcheck_fails(forked, leakcheck_run, tmp_path, place):
    pytest.importorskip("torch")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(place=place))

    alone = subprocess.run(
        [forked.python, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    watched = leakcheck_run("--to-end", "--exit-zero", "train.py", folder=tmp_path)

    assert alone.returncode == 0, alone.stderr
    assert (watched.stdout, watched.returncode) == (alone.stdout, 0)
    assert "ZeroDivisionError: division by zero" in " ".join(watched.stderr.split())
    assert "Traceback" not in watched.stderr


def test_once_it_has_failed_it_is_called_no_more():
    guard, called = ErrorGuard(), []

    def act(number):
        called.append(number)
        return 1 / (number - 2)

    ran = guard.hidden(act)

    assert [ran(1), ran(2), ran(3)] == [-1.0, None, None]
    assert called == [1, 2]
    assert guard.broken.startswith("ZeroDivisionError: division by zero (act, line ")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot hide a call")
def test_a_tracer_sees_that_it_is_called_and_not_what_it_does():
    seen: list[str] = []

    def work():
        return [number for number in map(str, range(1000))]  # noqa: C416

    def trace(frame, event, _):
        seen.append(frame.f_code.co_name)
        return trace

    hidden = ErrorGuard().hidden(work)
    before = sys.gettrace()
    sys.settrace(trace)
    hidden()
    sys.settrace(before)

    assert set(seen) == {"run"}
    assert len(seen) < 20


def test_a_listener_that_fails_leaves_the_collector_alone():
    guard, heard = ErrorGuard(), []

    def act(phase, numbers):
        heard.append((phase, numbers["generation"]))
        raise KeyError(phase)

    listener, before = CollectorListener(act, guard), list(gc.callbacks)
    listener.begin()
    gc.collect()
    gc.collect()
    listener.end()

    assert heard == [("start", 2), ("stop", 2)]
    assert guard.broken.startswith("KeyError: 'start'")
    assert gc.callbacks == before


@pytest.mark.parametrize("phase", ["start", "stop"])
def test_what_a_handler_raises_during_a_collection_comes_up_as_it_ends(phase):
    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm(phase)

    rung: list[str] = []

    def collected():
        gc.collect()
        return sum(range(10))

    def act(now, numbers):
        if now == phase and not rung:
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, ring)
    listener = CollectorListener(act, ErrorGuard())
    listener.begin()
    try:
        with pytest.raises(Alarm, match=phase) as raised:
            collected()
        rung.append("all")
        gc.collect()
    finally:
        listener.end()
        signal.signal(signal.SIGUSR1, before)

    assert raised.traceback[0].path == Path(__file__)
    assert "collector" not in {entry.path.stem for entry in raised.traceback}


def test_handlers_that_raise_twice_in_one_collection_and_end_generators_lose_nothing():
    kinds = {"start": GeneratorExit, "stop": SystemExit}
    rung: list[str] = []
    raised: list[type[BaseException]] = []

    def ring(number, frame):
        raise kinds[rung[-1]]

    def act(phase, told):
        if len(rung) < len(kinds):
            rung.append(phase)
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, ring)
    listener = CollectorListener(act, ErrorGuard())
    listener.begin()
    try:
        for _ in range(4):
            try:
                gc.collect()
                sum(range(10))
            except BaseException as error:  # noqa: PERF203
                raised.append(type(error))
    finally:
        listener.end()
        signal.signal(signal.SIGUSR1, before)

    assert raised == [GeneratorExit, SystemExit]
