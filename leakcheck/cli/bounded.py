"""Read a file of somebody else's within memory that its size explains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from leakcheck.errors import RecordingError

_SPARE_BYTES = 2 << 30
_MOST_BYTES_PER_BYTE = 100  # gzipped traces and pickled frames come to 20-60


@contextmanager
def bounded_memory(file: Path) -> Iterator[None]:
    """Refuse a file that would take far more memory than its size explains.

    A pickle of a few bytes can make the unpickler allocate tens of gigabytes.
    """
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_AS)
        size = file.stat().st_size if file.is_file() else 0
        wanted = psutil.Process().memory_info().vms + _SPARE_BYTES + _MOST_BYTES_PER_BYTE * size
        soft = wanted if before[0] == resource.RLIM_INFINITY else min(wanted, before[0])
        resource.setrlimit(resource.RLIMIT_AS, (soft, before[1]))
    except (ImportError, OSError, ValueError):  # no such limit on this system
        yield
        return
    try:
        yield
    except MemoryError:
        raise RecordingError(f"{file}: takes more memory than its size explains") from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
