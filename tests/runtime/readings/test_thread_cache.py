from __future__ import annotations

import subprocess
import sys

import pytest

from leakcheck.runtime.readings.heap import heap_reader
from leakcheck.runtime.readings.thread_cache import cached_bytes_reader

LIBC = """
import ctypes
libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
"""
needs_cache = pytest.mark.skipif(cached_bytes_reader() is None, reason="needs glibc's tcache")


@needs_cache
@pytest.mark.skipif(heap_reader() is None, reason="needs a libc that tells its heap")
def test_a_small_block_counts_as_in_use_wherever_it_came_from():
    told = printed("""
from leakcheck.runtime.readings.heap import heap_reader
read = heap_reader()
for block in [libc.malloc(1000) for _ in range(4)]:
    libc.free(block)  # and four such blocks are at hand
levels = [read()]
for _ in range(9):  # four of them from there
    libc.malloc(1000)
    levels.append(read())
print([after - before for before, after in zip(levels, levels[1:])])
""")

    assert told == f"{[1008] * 9}\n"


@needs_cache
def test_what_is_kept_at_hand_is_what_was_freed():
    told = printed("""
from leakcheck.runtime.readings.thread_cache import cached_bytes_reader
read = cached_bytes_reader()
blocks = [libc.malloc(size) for size in (24, 500, 1032, 1033)]
before = read()
for block in blocks:
    libc.free(block)
print(read() - before)
""")

    assert told == f"{32 + 512 + 1040}\n"  # the last is too large to be kept


def test_of_another_thread_nothing_is_claimed():
    told = printed("""
from concurrent.futures import ThreadPoolExecutor
from leakcheck.runtime.readings.thread_cache import cached_bytes_reader
print(ThreadPoolExecutor().submit(cached_bytes_reader).result())
""")

    assert told == "None\n"


def test_where_the_allocator_keeps_nothing_at_hand_nothing_is_claimed():
    told = printed(
        "from leakcheck.runtime.readings.thread_cache import cached_bytes_reader\n"
        "print(cached_bytes_reader())",
        "GLIBC_TUNABLES=glibc.malloc.tcache_count=0",
    )

    assert told == "None\n"


def printed(source: str, *environment: str) -> str:
    done = subprocess.run(
        ["env", *environment, sys.executable, "-c", LIBC + source],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
