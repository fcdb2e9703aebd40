"""Device profiles: the few facts of a GPU that a prediction rests on, read from `devices.toml`."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from leakcheck.errors import UsageError
from leakcheck.memory.reductions import Grid
from leakcheck.memory.workspaces import cublas_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEVICES = Path(__file__).with_name("devices.toml")
AMPERE = (8, 0)
# of a multiprocessor: CUDA C++ programming guide, technical specifications per compute capability
USUAL_THREADS = 2048
THREADS = {(7, 5): 1024, (8, 6): 1536, (8, 9): 1536, (12, 0): 1536}
# of a T4, for every device nobody measured: devices.toml names the source
USUAL_CONTEXT_BYTES, USUAL_CUDNN_BYTES = 137_363_456, 4_063_232


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One device; `context_measured` is False where the context is taken from the T4.

    `memory_source` is "measured", "usual" or "data sheet", as devices.toml explains; `cudnn_bytes`
    is what loading cuDNN adds to the context.
    """

    key: str
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    memory_source: str
    multiprocessors: int
    context_bytes: int
    context_measured: bool
    cudnn_bytes: int

    @property
    def workspace_bytes(self) -> int:
        """The cuBLAS workspace of one handle, where the environment says nothing else."""
        return cublas_bytes(self.capability, {})

    @property
    def grid(self) -> Grid:
        """How many threads run at once."""
        return Grid(self.multiprocessors, THREADS.get(self.capability, USUAL_THREADS))

    @property
    def native_bf16(self) -> bool:
        """Whether flash attention and tensor cores take bfloat16."""
        return self.capability >= AMPERE


@lru_cache(maxsize=1)
def profiles() -> dict[str, DeviceProfile]:
    """Return every profile by its key."""
    with DEVICES.open("rb") as file:
        tables = tomllib.load(file)
    return {key: _profile(key, table) for key, table in tables.items()}


def profile(key: str) -> DeviceProfile:
    """Return a device's profile. Raises UsageError, with the nearest name, for an unknown one."""
    known = profiles()
    wanted = key.strip().lower()
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(known)}"
        raise UsageError(f'no profile of a device "{key}"{hint}')
    return known[wanted]


def _profile(key: str, table: dict[str, object]) -> DeviceProfile:
    capability = table["capability"]
    assert isinstance(capability, list)
    context = table.get("context_bytes")
    return DeviceProfile(
        key=key,
        name=str(table["name"]),
        capability=(int(capability[0]), int(capability[1])),
        memory_bytes=int(str(table["memory_bytes"])),
        memory_source=str(table["memory_source"]),
        multiprocessors=int(str(table["multiprocessors"])),
        context_bytes=int(str(context)) if context else USUAL_CONTEXT_BYTES,
        context_measured=context is not None,
        cudnn_bytes=int(str(table.get("cudnn_bytes", USUAL_CUDNN_BYTES))),
    )
