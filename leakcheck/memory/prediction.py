"""What a prediction says, and the request it answers: values that cross the process border."""

from __future__ import annotations

from dataclasses import dataclass, field

from leakcheck.model import LedgerPage

# six published device peaks (tests/benchmarks/predictor_accuracy.py): mean error 0.17 %, worst
# 0.33 % of the allocated peak when what the process did before is predicted too, 0.22 % and 0.71 %
# without; the reserved peaks of 16 such points: mean 1.3 %, worst 6.9 %
ALLOCATED_ERROR = 0.0075
RESERVED_ERROR = 0.07
# added for each kind of thing that could not be honoured: a convention, nobody measured it
ASSUMPTION_ERROR = 0.05


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

    The low and high bounds are wider, the more had to be assumed. `mode` is "fake"
    (no tensor had numbers) or "cpu" (the real step ran on the host).
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
    notes: tuple[str, ...] = ()
    batch_size: int | None = None

    @property
    def error(self) -> float:
        """The relative half-width of the allocated peak's interval."""
        return ALLOCATED_ERROR + ASSUMPTION_ERROR * len(self.notes)

    @property
    def reserved_error(self) -> float:
        """The relative half-width of the reserved peak's interval."""
        return RESERVED_ERROR + ASSUMPTION_ERROR * len(self.notes)

    @property
    def low_bytes(self) -> int:
        """The lower bound of the allocated peak."""
        return max(0, int(self.peak_allocated_bytes * (1 - self.error)))

    @property
    def high_bytes(self) -> int:
        """The upper bound of the allocated peak."""
        return int(self.peak_allocated_bytes * (1 + self.error))

    @property
    def low_reserved_bytes(self) -> int:
        """The lower bound of the reserved peak."""
        return max(0, int(self.peak_reserved_bytes * (1 - self.reserved_error)))

    @property
    def high_reserved_bytes(self) -> int:
        """The upper bound of the reserved peak."""
        return int(self.peak_reserved_bytes * (1 + self.reserved_error))

    @property
    def process_bytes(self) -> int:
        """Reserved memory and the context: what the device must have free."""
        return self.peak_reserved_bytes + self.context_bytes

    @property
    def fits(self) -> bool:
        """Whether the device is large enough."""
        return self.process_bytes <= self.memory_bytes
