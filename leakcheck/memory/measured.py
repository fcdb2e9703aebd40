"""A recording of the real program beside the prediction of it: the peaks, and one step of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from leakcheck.memory.prediction import Prediction
from leakcheck.memory.steps import find_steps
from leakcheck.memory.timeline import Recorded, Timeline, recorded_timeline
from leakcheck.memory.trace import Mark, Trace
from leakcheck.memory.verdict import recorded_config
from leakcheck.model import LedgerPage

# how a program may have named the phases (torch.cuda.memory._set_memory_metadata), and ours
_PHASES: Final = {
    "after forward": "after forward",
    "after backward": "after backward",
    "after step": "after step",
    "after optimizer": "after step",
}


@dataclass(frozen=True, slots=True)
class Peak:
    """A peak, measured and predicted; `inside` tells of the interval, None where there is none."""

    measured_bytes: int
    predicted_bytes: int
    inside: bool | None

    @property
    def difference(self) -> float:
        """How far the prediction is above what was measured, as a share of it."""
        return self.predicted_bytes / self.measured_bytes - 1 if self.measured_bytes else 0.0


@dataclass(frozen=True, slots=True)
class PeakComparison:
    """What a recording shows beside a prediction.

    `timeline` is the last whole step of the recording, or all of it when `found_by` is empty.
    `predicted_pages` are those that the recording names a moment for, `measured_pages` what it had
    allocated there, without categories.
    """

    name: str
    events: int
    found_by: str
    allocated: Peak
    reserved: Peak
    timeline: Timeline
    measured_pages: tuple[LedgerPage, ...]
    predicted_pages: tuple[LedgerPage, ...]


def compare(trace: Trace, prediction: Prediction) -> PeakComparison:
    """Find the last step of a recording and set it beside the predicted one."""
    steps = find_steps(trace)
    whole = (0, len(trace.events))
    start, stop = steps.boundaries[-2:] if len(steps.boundaries) > 1 else whole
    recorded = recorded_timeline(trace, start, stop, recorded_config(trace))
    named = _named_moments(trace.marks, recorded)
    pages = tuple(page for page in prediction.pages if page.phase in named)
    return PeakComparison(
        name=trace.name,
        events=len(trace.events),
        found_by=steps.found_by,
        allocated=_peak(
            recorded.peak_allocated_bytes,
            prediction.peak_allocated_bytes,
            prediction.allocated_interval,
        ),
        reserved=_peak(
            recorded.peak_reserved_bytes,
            prediction.peak_reserved_bytes,
            prediction.reserved_interval,
        ),
        timeline=recorded.timeline,
        measured_pages=tuple(replace(p, rows=(), allocated_bytes=named[p.phase]) for p in pages),
        predicted_pages=pages,
    )


def highest_trace(traces: Sequence[Trace]) -> Trace:
    """The recording with the most events: that of the device the program used."""
    return max(traces, key=lambda trace: len(trace.events))


def _named_moments(marks: Sequence[Mark], recorded: Recorded) -> dict[str, int]:
    """Phase -> allocated bytes when the recording last named it."""
    return {
        _PHASES[mark.label]: recorded.levels[mark.at] for mark in marks if mark.label in _PHASES
    }


def _peak(measured: int, predicted: int, interval: tuple[int, int] | None) -> Peak:
    inside = None if interval is None else interval[0] <= measured <= interval[1]
    return Peak(measured, predicted, inside)
