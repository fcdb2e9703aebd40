"""What a prediction says, and the request it answers: values that cross the process border."""

from __future__ import annotations

from dataclasses import dataclass, field

from leakcheck.memory.timeline import Timeline
from leakcheck.model import LedgerPage

# twelve device peaks, six of a T4 and six of an H200 (tests/benchmarks/predictor_accuracy.py): mean
# error 0.07 %, worst 0.25 % of the allocated peak when what the process did before is predicted
# too, 0.14 % and 0.37 % without; of the reserved peak 0.8 % and 4.6 %. What the cards between them
# do nobody measured, so the intervals stay as wide as they were with an older predictor.
ALLOCATED_ERROR = 0.0075
RESERVED_ERROR = 0.07
CUDNN_NOTE = "convolution workspaces of cuDNN are not counted"
# what a note adds to both errors, where it was measured: the worst of two published ResNet-50 steps
# (0.33 % and 6.9 %) and a small network on an H200, where a few MiB are more of the whole
MEASURED_ERRORS = {CUDNN_NOTE: (0.0289, 0.1786)}


@dataclass(frozen=True, slots=True)
class Request:
    """What to run and as which device."""

    target: str
    arguments: tuple[str, ...] = ()
    device: str = "h200"
    policy: str = "native"
    steps: int = 3
    batch_size: int | None = None
    on_cpu: bool = False
    workspace_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """Peaks of a training run in bytes, by phase, and the ledger of its last step.

    `mode` is "fake" (no tensor had numbers) or "cpu" (the real step ran on the host). `notes` names
    what is not modelled: where nobody measured what that is worth, there is no interval.
    `conditions` are what the numbers hold for. `peak_page` is the last step's highest moment,
    `timeline` that step over its events. `output_bytes` is what modules returned in its forward
    pass, the sum that forward hooks tell.
    """

    device: str
    mode: str
    steps: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    context_bytes: int
    memory_bytes: int
    phase_peaks: dict[str, int] = field(default_factory=dict)
    pages: tuple[LedgerPage, ...] = ()
    peak_page: LedgerPage | None = None
    timeline: Timeline | None = None
    notes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    batch_size: int | None = None
    context_measured: bool = True
    output_bytes: int = 0

    @property
    def error(self) -> float | None:
        """The relative half-width of the allocated peak's interval, None when nobody knows it."""
        return self._error(ALLOCATED_ERROR, 0)

    @property
    def reserved_error(self) -> float | None:
        """The relative half-width of the reserved peak's interval, None when nobody knows it."""
        return self._error(RESERVED_ERROR, 1)

    @property
    def allocated_interval(self) -> tuple[int, int] | None:
        """The bounds of the allocated peak in bytes."""
        return self._interval(self.peak_allocated_bytes, self.error)

    @property
    def reserved_interval(self) -> tuple[int, int] | None:
        """The bounds of the reserved peak in bytes."""
        return self._interval(self.peak_reserved_bytes, self.reserved_error)

    @property
    def process_bytes(self) -> int:
        """Reserved memory and the context: what the device must have free."""
        return self.peak_reserved_bytes + self.context_bytes

    @property
    def fits(self) -> bool:
        """Whether the device is large enough."""
        return self.process_bytes <= self.memory_bytes

    def _error(self, least: float, column: int) -> float | None:
        if any(note not in MEASURED_ERRORS for note in self.notes):
            return None
        return least + sum(MEASURED_ERRORS[note][column] for note in self.notes)

    def _interval(self, peak_bytes: int, error: float | None) -> tuple[int, int] | None:
        if error is None:
            return None
        return int(peak_bytes * (1 - error)), int(peak_bytes * (1 + error))
