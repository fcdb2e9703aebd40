"""Leak rates as metrics, through whatever logger the program already has.

A tracker is any function `(name, value, step)`; the three below make one from the user's own
TensorBoard writer, W&B run or MLflow module. None of them is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from leakcheck.model import Report

Tracker = Callable[[str, float, int], object]
PREFIX = "leakcheck"


class ScalarWriter(Protocol):
    """What is used of a TensorBoard SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Write one point."""


class MetricRun(Protocol):
    """What is used of a W&B run."""

    def log(self, data: dict[str, float], *, commit: bool) -> object:
        """Add to the point that the program's own next `log` writes."""


class MetricModule(Protocol):
    """What is used of the mlflow module or client."""

    def log_metric(self, key: str, value: float, step: int) -> object:
        """Write one point."""


def rates(report: Report) -> dict[str, float]:
    """Return every trend's slope by name, e.g. {"leakcheck/host.heap_bytes_per_step": 7802.0}."""
    metrics = {
        f"{PREFIX}/{trend.resource}_{_unit(trend.unit)}per_step": trend.per_step
        for trend in report.trends
    }
    return metrics | {f"{PREFIX}/growing": float(report.verdict == "growing")}


def track(report: Report, tracker: Tracker, step: int) -> None:
    """Hand every rate of the report to the tracker."""
    for name, value in rates(report).items():
        tracker(name, value, step)


def tensorboard(writer: ScalarWriter) -> Tracker:
    """Return a tracker that writes scalars to a SummaryWriter."""
    return lambda name, value, step: writer.add_scalar(name, value, step)


def wandb(run: MetricRun) -> Tracker:
    """Return a tracker that logs to a W&B run.

    The rates go out with what the program logs next, so that its own steps stay as they are;
    "leakcheck/step" is the step that a rate belongs to.
    """
    return lambda name, value, step: run.log({name: value, f"{PREFIX}/step": step}, commit=False)


def mlflow(module: MetricModule) -> Tracker:
    """Return a tracker that logs metrics to MLflow."""
    return lambda name, value, step: module.log_metric(name, value, step=step)


def _unit(unit: str) -> str:
    return "bytes_" if unit == "B" else ""
