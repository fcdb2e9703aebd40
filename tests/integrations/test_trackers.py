from __future__ import annotations

import pytest

from leakcheck.integrations.loop import LoopWatch
from leakcheck.integrations.trackers import mlflow as mlflow_tracker
from leakcheck.integrations.trackers import rates, tensorboard, track, wandb
from leakcheck.model import Report, Trend

REPORT = Report(
    verdict="growing",
    trends=(
        Trend("host.heap", "B", 7802.0, 7800.0, 7804.0, 1e6, 128, "growing"),
        Trend("graph.nodes", "Nodes", 11.0, 11.0, 11.0, 1408.0, 128, "growing"),
    ),
)
METRICS = {
    "leakcheck/host.heap_bytes_per_step": 7802.0,
    "leakcheck/graph.nodes_per_step": 11.0,
    "leakcheck/growing": 1.0,
}


def test_every_trend_is_a_metric_with_its_unit():
    assert rates(REPORT) == METRICS


def test_tensorboard_files_hold_the_rates(tmp_path):
    pytest.importorskip("tensorboard")
    writers = pytest.importorskip("torch.utils.tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with writers.SummaryWriter(str(tmp_path)) as writer:
        track(REPORT, tensorboard(writer), 40)

    events = EventAccumulator(str(tmp_path)).Reload()
    told = {tag: events.Scalars(tag)[0] for tag in events.Tags()["scalars"]}
    assert {tag: event.value for tag, event in told.items()} == METRICS
    assert {event.step for event in told.values()} == {40}


def test_an_mlflow_run_holds_the_rates(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more packages
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())

    with mlflow.start_run() as run:
        track(REPORT, mlflow_tracker(mlflow), 40)

    assert mlflow.get_run(run.info.run_id).data.metrics == METRICS


def test_a_wandb_run_gets_the_rates_and_keeps_its_own_steps(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb_package = pytest.importorskip("wandb")
    settings = wandb_package.Settings(silent=True, x_disable_stats=True)

    with wandb_package.init(dir=str(tmp_path), project="leaks", settings=settings) as run:
        for loss in (0.5, 0.4):
            run.log({"loss": loss})
            before = run.step
            track(REPORT, wandb(run), 40)
            assert run.step == before
        run.log({"loss": 0.3})
        told = {name: run.summary[name] for name in (*METRICS, "leakcheck/step", "loss", "_step")}

    assert told == {**METRICS, "leakcheck/step": 40, "loss": 0.3, "_step": 2}


def test_a_tracker_that_fails_is_told_once_and_the_loop_goes_on():
    def full(name, value, step):
        raise OSError("disk full")

    def train():
        watch = LoopWatch(tracker=full, log_every=1)
        watch.begin()
        for _ in range(5):
            watch.step()
        watch.end()

    with pytest.warns(RuntimeWarning) as told:
        train()

    failed = "leakcheck: the tracker failed: OSError: disk full"
    assert [str(warning.message) for warning in told] == [failed]


def test_a_report_that_cannot_be_told_does_not_reach_the_program():
    def broken(report):
        raise ValueError("no terminal")

    watch = LoopWatch(on_report=broken)
    watch.begin()
    watch.step()

    with pytest.warns(RuntimeWarning, match="leakcheck: on_report failed: ValueError"):
        watch.end()
