from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys

import pytest

from leakcheck.runtime.readings.heap import heap_reader, kept_free_bytes

ASK = """
import ctypes
from leakcheck.runtime.readings.heap import heap_reader, kept_free_bytes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
read = heap_reader()
before = read()
for _ in range(1000):
    libc.malloc(3000)
print(read() - before)
"""


@pytest.mark.skipif(heap_reader() is None, reason="needs a libc that tells its heap")
def test_bytes_in_use_are_told_by_the_allocator_of_the_platform():
    assert 3_000_000 <= int(asked()) <= 3_300_000


@pytest.mark.skipif(kept_free_bytes() == 0, reason="needs a libc that tells what it keeps")
def test_what_lies_between_blocks_in_use_is_kept_when_it_is_freed():
    blocks = [bytearray(3000) for _ in range(1000)]
    between = blocks[::2]
    before = kept_free_bytes()
    blocks.clear()

    assert 1_500_000 <= kept_free_bytes() - before <= 1_800_000
    assert len(between) == 500


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc"])
def test_a_preloaded_allocator_is_asked_instead_of_glibc(name):
    library = ctypes.util.find_library(name)
    if library is None:
        pytest.skip(f"{name} is not installed")

    # they count by what a thread has taken, many blocks at a time
    assert 2_700_000 <= int(asked(LD_PRELOAD=library)) <= 3_300_000


def asked(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout
