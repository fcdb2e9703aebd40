"""How much plain objects may gain without being a leak: a step, and beyond that in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_TOLERANCE_BYTES = 1 << 10  # a step
DEFAULT_PER_HOUR_BYTES = 64 << 20
DEFAULT_TOTAL_BYTES = 32 << 20
LONG_RUN_S = 60.0  # from then on a rate by the hour says something
LEAST_PART = 0.1  # of a growth that passed what nobody minds, for what grows to be a cause of it
Passed = Literal["", "an hour", "in all"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What nobody minds: bytes a step, bytes an hour of a long run, and bytes in a whole run.

    A kilobyte a step is nothing where a step takes a second, and 75 MiB a second where it takes ten
    microseconds. A log of plain numbers is kept on purpose, however fast the steps are.
    """

    per_step_bytes: int = DEFAULT_TOLERANCE_BYTES
    per_hour_bytes: int = DEFAULT_PER_HOUR_BYTES
    total_bytes: int = DEFAULT_TOTAL_BYTES

    def passed(self, bytes_per_step: float, steps: int, elapsed_s: float) -> Passed:
        """Say what growth of so many bytes a step has passed in a run so far, "" if nothing."""
        gained = bytes_per_step * steps
        if gained > self.total_bytes:
            return "in all"
        is_long = elapsed_s > LONG_RUN_S
        return "an hour" if is_long and gained / elapsed_s * 3600 > self.per_hour_bytes else ""

    def beside(self, passed_per_step: float) -> int:
        """Return how much may grow, in bytes a step, without being the cause of what has passed.

        Half a block a step is no leak where a thread of Ray's made resident memory 32 MiB larger.
        """
        return min(self.per_step_bytes, int(LEAST_PART * passed_per_step))

    def for_numbers(self, passed: Passed) -> int:
        """Return what a log of plain numbers may gain a step, in bytes."""
        return 0 if passed == "in all" else self.per_step_bytes
