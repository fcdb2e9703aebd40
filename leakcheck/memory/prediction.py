"""What a prediction says, and the request it answers: values that cross the process border."""

from __future__ import annotations

from dataclasses import dataclass, field

from leakcheck.model import LedgerPage

# measured on 16 published device peaks: mean error 0.15 %, worst 0.46 % of the allocated peak,
# and 1.3 %, worst 6.9 %, of the reserved one
ALLOCATED_ERROR = 0.005
RESERVED_ERROR = 0.07
ASSUMPTION_ERROR = 0.05  # added for each kind of thing that could not be honoured


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

    `low` and `high` bound the allocated peak: wider, the more had to be assumed. `mode` is "fake"
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
        """The relative half-width of the interval."""
        return ALLOCATED_ERROR + ASSUMPTION_ERROR * len(self.notes)

    @property
    def low_bytes(self) -> int:
        """The lower bound of the allocated peak."""
        return int(self.peak_allocated_bytes * (1 - self.error))

    @property
    def high_bytes(self) -> int:
        """The upper bound of the allocated peak."""
        return int(self.peak_allocated_bytes * (1 + self.error))

    @property
    def process_bytes(self) -> int:
        """Reserved memory and the context: what the device must have free."""
        return self.peak_reserved_bytes + self.context_bytes

    @property
    def fits(self) -> bool:
        """Whether the device is large enough."""
        return self.process_bytes <= self.memory_bytes
