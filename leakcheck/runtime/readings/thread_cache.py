"""Small blocks that glibc keeps at hand for a thread's next requests, and counts as in use.

A thread has up to seven free blocks of each of 64 sizes ("tcache", glibc 2.26 and later). A leaked
block that comes from there changes nothing in mallinfo2, and whichever line next finds the cache
empty is seen to add one: in a loop that leaked 64 bytes a step the line before was credited.

glibc has no call that tells. The main thread's cache is the first block of its heap, 64 counts
and then 64 lists (`tcache_perthread_struct`, malloc.c of glibc 2.30 to 2.41), and is believed only
if a block that is freed is seen to arrive in it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from operator import mul
from pathlib import Path

BINS = 64
LARGEST_CACHED_BYTES = 1032  # a larger block never goes there
_SMALLEST_CHUNK, _CHUNK_STEP, _HEAD = 32, 16, 16  # bytes, on 64-bit platforms
_CHUNKS = tuple(_SMALLEST_CHUNK + _CHUNK_STEP * index for index in range(BINS))
_TRIED = (200, 1000)  # bytes, to see whether they arrive
_IN_USE_FLAG = 1


class _ThreadCache(ctypes.Structure):
    _fields_ = (("counts", ctypes.c_uint16 * BINS), ("entries", ctypes.c_void_p * BINS))


def cached_bytes_reader() -> Callable[[], int] | None:
    """Return a function that reads the bytes cached for the calling thread.

    0.2 us where nothing changed since the last reading, else 2 us.
    None where that is not known: in another thread than the main one, with another allocator than
    glibc's or another version of it.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    cache = _of_main_thread()
    if cache is None or not all(_arrives(cache, size) for size in _TRIED):
        return None
    counts = memoryview(cache.counts).cast("B").cast("H")  # unpacked, it took a block itself
    known, known_bytes = b"", 0

    def read() -> int:
        nonlocal known, known_bytes
        now = counts.tobytes()
        if now != known:
            known, known_bytes = now, sum(map(mul, counts, _CHUNKS))
        return known_bytes

    return read


def _of_main_thread() -> _ThreadCache | None:
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return None
    heap = next((line for line in maps.splitlines() if line.endswith("[heap]")), None)
    if heap is None:
        return None
    begin, end = (int(text, 16) for text in heap.split()[0].split("-"))
    block_bytes = ctypes.sizeof(_ThreadCache) + _HEAD
    if end - begin < block_bytes:
        return None
    stated = ctypes.c_size_t.from_address(begin + _HEAD // 2).value
    is_cache = stated == block_bytes | _IN_USE_FLAG
    return _ThreadCache.from_address(begin + _HEAD) if is_cache else None


def _arrives(cache: _ThreadCache, size: int) -> bool:
    libc = ctypes.PyDLL(None)
    allocate, free = libc["malloc"], libc["free"]
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    free.restype, free.argtypes = None, (ctypes.c_void_p,)
    index = (size + _HEAD // 2 + _CHUNK_STEP - 1) // _CHUNK_STEP - _SMALLEST_CHUNK // _CHUNK_STEP
    block = allocate(size)
    before = cache.counts[index]
    free(block)
    return bool(cache.counts[index] == before + 1 and cache.entries[index] == block)
