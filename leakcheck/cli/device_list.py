"""`leakcheck estimate --devices`: the profiles, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leakcheck.units import format_bytes

if TYPE_CHECKING:
    from leakcheck.memory.profiles import DeviceProfile

_ROW = "{:<12}{:<26}{:>4}  {:<22}{:<14}{}"
_FOOT = """\
usual: what such a card usually reports; data sheet: its round number. Near the border ask the card
itself: torch.cuda.mem_get_info(). Where no context was measured, the T4's is taken.\
"""


def table() -> str:
    """Return the devices, a line each, with what their numbers rest on."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    from leakcheck.memory.profiles import profiles

    yield _ROW.format("device", "name", "", "memory", "context", "cuBLAS workspace").rstrip()
    yield from map(_line, profiles().values())
    yield _FOOT


def _line(profile: DeviceProfile) -> str:
    memory = f"{format_bytes(profile.memory_bytes)}, {profile.memory_source}"
    context = "measured" if profile.context_measured else "not measured"
    workspace = format_bytes(profile.workspace_bytes)
    capability = ".".join(map(str, profile.capability))
    return _ROW.format(profile.key, profile.name, capability, memory, context, workspace)
