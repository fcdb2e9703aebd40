"""`leakcheck estimate --measured`: a recording of the real run beside the prediction of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leakcheck.cli.bounded import bounded_memory
from leakcheck.errors import UsageError
from leakcheck.units import format_bytes, format_count

if TYPE_CHECKING:
    from leakcheck.memory.measured import Peak, PeakComparison
    from leakcheck.memory.prediction import Prediction
    from leakcheck.memory.trace import Trace


def read(file: Path) -> Trace:
    """Read the recording of the device that was used most. Raises LeakcheckError."""
    from leakcheck.memory.measured import highest_trace
    from leakcheck.memory.snapshot import load

    with bounded_memory(file):
        trace = highest_trace(load(file))
    if not trace.events:
        raise UsageError(
            f"{file}: holds no event; call torch.cuda.memory._record_memory_history() before the "
            "first step, and _dump_snapshot() after the last"
        )
    return trace


def compared(trace: Trace, prediction: Prediction) -> PeakComparison:
    """Set the recording beside the prediction."""
    from leakcheck.memory.measured import compare

    return compare(trace, prediction)


def pictures(prediction: Prediction, comparison: PeakComparison | None) -> Sequence[str]:
    """The prediction as pictures, or a step of it beside the measured one."""
    from leakcheck.report import picture

    if comparison is None:
        return picture.prediction_svgs(prediction)
    return picture.comparison_svgs(comparison, prediction)


def stacked(drawn: Sequence[str]) -> str:
    """Return one picture with all of these below each other."""
    from leakcheck.report.picture import below_each_other

    return below_each_other(drawn)


def text(comparison: PeakComparison) -> str:
    """The peaks, how far the prediction is from them, and what of the recording is drawn."""
    step = f"a step by {comparison.found_by}" if comparison.found_by else "no steps found"
    return "\n".join(
        [
            f"measured ({comparison.name}: {format_count(comparison.events)} events, {step}):",
            f"  peak allocated  {_peak(comparison.allocated)}",
            f"  peak reserved   {_peak(comparison.reserved)}",
        ]
    )


def told(comparison: PeakComparison) -> dict[str, object]:
    """The same for JSON."""
    peaks = {"allocated": comparison.allocated, "reserved": comparison.reserved}
    return {
        "name": comparison.name,
        "events": comparison.events,
        "steps_found_by": comparison.found_by,
    } | {
        f"peak_{name}": {
            "measured_bytes": each.measured_bytes,
            "predicted_bytes": each.predicted_bytes,
            "difference": each.difference,
            "inside_interval": each.inside,
        }
        for name, each in peaks.items()
    }


def _peak(peak: Peak) -> str:
    interval = {None: "", True: ", inside the interval", False: ", outside the interval"}
    measured, predicted = format_bytes(peak.measured_bytes), format_bytes(peak.predicted_bytes)
    far = f"{peak.difference:+.2%}"
    return f"{measured}; predicted {predicted}, {far}{interval[peak.inside]}"
