"""Growth that is confirmed and yet no leak: plain objects below the tolerance, torch's own ring."""

from __future__ import annotations

from leakcheck.model import Notice
from leakcheck.runtime import flight_recorder
from leakcheck.runtime.judge import Reading
from leakcheck.units import format_bytes

BLOCK_BYTES = 64  # a float with its slot in a list is 32 bytes, a small dictionary 184
PLAIN = frozenset({"python.blocks", "host.heap"})


def excuse(confirmed: list[Reading], tolerance_bytes: int) -> Notice | None:
    """Return why the confirmed growth is harmless, None if it is not."""
    rates = {reading.resource: reading.line.per_step for reading in confirmed}
    if not rates.keys() <= PLAIN:
        return None
    bytes_per_step = rates.get("python.blocks", 0.0) * BLOCK_BYTES + rates.get("host.heap", 0.0)
    if "python.blocks" in rates and bytes_per_step < tolerance_bytes:
        amount, limit = format_bytes(bytes_per_step), format_bytes(tolerance_bytes)
        told = f"plain objects grow about {amount} a step, below the tolerance of {limit} a step"
        return Notice("below-tolerance", told)
    if flight_recorder.filling():
        told = "the heap grew while the flight recorder of torch.distributed filled up"
        return Notice("bounded", told)
    return None
