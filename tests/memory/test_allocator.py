from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakcheck.memory.allocator import NativeAllocator, NativeConfig, OutOfMemory, round_size
from leakcheck.memory.blocks import FREE, UNMAPPED, USED, Allocator
from leakcheck.memory.expandable import ExpandableAllocator
from leakcheck.memory.policies import AutoGrowthAllocator, IdealAllocator
from leakcheck.memory.rounding import MIB, parse_roundup

GIB = 1 << 30


def allocated(size: int) -> int:
    allocator = NativeAllocator()
    allocator.malloc(size)
    return allocator.allocated_bytes


@pytest.mark.parametrize(
    ("requested", "counted"),
    [
        (4, 512),
        (3200, 3584),
        (MIB, MIB),
        (154_389_504, 155_189_248),  # up to 1 MiB that is not split off counts too
        (200_000_000, 200_000_000),  # more than 1 MiB is split off
    ],
)
def test_a_block_counts_its_rounding_and_its_slop(requested: int, counted: int):
    assert allocated(requested) == counted


@pytest.mark.parametrize(
    ("requested", "reserved"),
    [(4096, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB, 10 * MIB), (11 * MIB + 1, 12 * MIB)],
)
def test_reserved_grows_by_segments(requested: int, reserved: int):
    allocator = NativeAllocator()

    allocator.malloc(requested)

    assert allocator.reserved_bytes == reserved


def test_the_smallest_block_that_fits_is_taken_and_the_lowest_of_equals():
    allocator = NativeAllocator()
    large, small, twin = (allocator.malloc(size * MIB) for size in (40, 30, 30))
    for address in (large, twin, small):
        allocator.free(address)

    assert allocator.malloc(30 * MIB) == min(small, twin)


def test_a_block_of_another_stream_is_never_taken():
    allocator = NativeAllocator()
    allocator.free(allocator.malloc(30 * MIB, stream=1))

    allocator.malloc(30 * MIB, stream=2)

    assert allocator.reserved_bytes == 60 * MIB


def test_a_private_pool_keeps_its_blocks_when_the_cache_is_emptied():
    allocator = NativeAllocator()
    allocator.free(allocator.malloc(30 * MIB, pool=(1, 0)))

    assert allocator.empty_cache() == 0
    assert allocator.empty_cache((1, 0)) == 30 * MIB


def test_unsplit_blocks_are_released_before_a_request_fails():
    allocator = NativeAllocator(limit=50 * MIB)
    allocator.free(allocator.malloc(30 * MIB))

    allocator.malloc(40 * MIB)

    assert (allocator.reserved_bytes, allocator.retries) == (40 * MIB, 1)


def test_a_request_above_the_limit_fails_with_the_sizes():
    allocator = NativeAllocator(limit=1 * GIB)

    with pytest.raises(OutOfMemory) as failure:
        allocator.malloc(2 * GIB)

    assert str(failure.value) == "2.0 GiB do not fit: 0 B reserved under a limit of 1.0 GiB"


def test_max_split_keeps_large_blocks_for_large_requests():
    allocator = NativeAllocator(NativeConfig(max_split_bytes=64 * MIB))
    allocator.free(allocator.malloc(100 * MIB))

    allocator.malloc(50 * MIB)
    allocator.malloc(90 * MIB)  # within the slack of 20 MiB

    assert allocator.reserved_bytes == 150 * MIB
    assert allocator.allocated_bytes == 150 * MIB


def test_max_split_releases_one_large_block_before_all():
    allocator = NativeAllocator(NativeConfig(max_split_bytes=64 * MIB), limit=200 * MIB)
    for address in [allocator.malloc(size * MIB) for size in (100, 40)]:
        allocator.free(address)

    allocator.malloc(70 * MIB)

    assert (allocator.reserved_bytes, allocator.retries) == (110 * MIB, 0)


def test_the_garbage_collector_frees_old_blocks_above_its_threshold():
    collecting = NativeAllocator(NativeConfig(gc_threshold=0.5), limit=200 * MIB)
    old = collecting.malloc(60 * MIB)
    collecting.free(old)
    young = collecting.malloc(70 * MIB)
    collecting.free(young)

    collecting.malloc(80 * MIB)

    assert collecting.retries == 0
    assert collecting.reserved_bytes < 60 * MIB + 70 * MIB + 80 * MIB


@pytest.mark.parametrize(
    ("size", "setting", "rounded"),
    [
        (1200, "4", 1536),  # below 512 * 4: multiples of 512
        (5000, "4", 5120),
        (1025 * 1024, "4", 1280 * 1024),
        (300 * MIB, "[256:1,512:2,1024:4,>:8]", 300 * MIB),
        (600 * MIB, "[256:1,512:2,1024:4,>:8]", 768 * MIB),
        (2100 * MIB, "[256:1,512:2,1024:4,>:8]", 2304 * MIB),
    ],
)
def test_roundup_divides_the_space_between_powers_of_two(size: int, setting: str, rounded: int):
    assert round_size(size, NativeConfig(roundup_divisions=parse_roundup(setting))) == rounded


@pytest.mark.parametrize("setting", ["3", "x", "[256:3]", "[256;1]", "[1:2,"])
def test_an_odd_roundup_setting_is_refused(setting: str):
    with pytest.raises(ValueError, match=r"power of two|list of divisions"):
        parse_roundup(setting)


def test_autogrowth_takes_the_best_fit_and_hands_out_its_tail():
    allocator = AutoGrowthAllocator()
    first = allocator.malloc(1000)
    allocator.free(first)

    tail = allocator.malloc(300)

    assert allocator.allocated_bytes == 512
    assert allocator.reserved_bytes == 1024
    assert tail == first + 512


def test_autogrowth_frees_idle_chunks_before_it_fails():
    allocator = AutoGrowthAllocator(limit=100 * MIB)
    allocator.free(allocator.malloc(60 * MIB))

    allocator.malloc(80 * MIB)

    assert allocator.reserved_bytes == 80 * MIB


def test_an_expandable_segment_grows_where_native_reserves_anew():
    native, expandable = NativeAllocator(), ExpandableAllocator()
    for allocator in (native, expandable):
        allocator.free(allocator.malloc(100 * MIB))
        allocator.malloc(110 * MIB)

    assert native.reserved_bytes == 210 * MIB
    assert expandable.reserved_bytes == 120 * MIB


def test_emptying_the_cache_unmaps_whole_pages_only():
    allocator = ExpandableAllocator()
    first, second = allocator.malloc(30 * MIB), allocator.malloc(30 * MIB)
    allocator.free(first)

    released = allocator.empty_cache()

    assert released == 20 * MIB
    assert allocator.malloc(30 * MIB) == first
    assert second == first + 30 * MIB


SIZES = st.one_of(st.integers(1, 4096), st.integers(MIB - 600, MIB + 600), st.integers(1, 90 * MIB))
PROGRAMS = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), SIZES, st.integers(0, 1)),
        st.tuples(st.just("free"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("empty"), st.just(0), st.just(0)),
    ),
    max_size=60,
)
LIMIT = 400 * MIB
MAKERS = {
    "native": lambda: NativeAllocator(limit=LIMIT),
    "max_split": lambda: NativeAllocator(NativeConfig(max_split_bytes=32 * MIB), LIMIT),
    "gc": lambda: NativeAllocator(NativeConfig(gc_threshold=0.6), LIMIT),
    "roundup": lambda: NativeAllocator(NativeConfig(roundup_divisions=parse_roundup("4")), LIMIT),
    "expandable": lambda: ExpandableAllocator(limit=LIMIT),
    "autogrowth": lambda: AutoGrowthAllocator(limit=LIMIT),
    "ideal": lambda: IdealAllocator(limit=LIMIT),
}


def run(allocator: Allocator, program: list[tuple[str, int, int]]) -> dict[int, int]:
    live: dict[int, int] = {}
    for action, number, stream in program:
        if action == "malloc":
            try:
                live[allocator.malloc(number, stream)] = number
            except OutOfMemory:
                continue
        elif action == "free" and live:
            address = list(live)[number % len(live)]
            del live[address]
            allocator.free(address)
        elif action == "empty":
            allocator.empty_cache()
    return live


def check_layout(allocator: Allocator) -> None:
    """Blocks tile their segments, no two free neighbours, and every count is a sum of blocks."""
    segments = allocator.segments()
    blocks = [block for segment in segments for block in segment.blocks]
    for segment in segments:
        at = segment.address
        for block in segment.blocks:
            assert block.address == at
            assert block.size > 0
            at += block.size
        states = [block.state for block in segment.blocks]
        assert not any(a == b != USED for a, b in pairwise(states))
    ends = sorted((b.address, b.address + b.size) for b in blocks)
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    used = [block for block in blocks if block.state == USED]
    assert allocator.allocated_bytes == sum(block.size for block in used)
    assert allocator.requested_bytes == sum(block.requested for block in used)
    assert allocator.reserved_bytes == sum(b.size for b in blocks if b.state != UNMAPPED)
    listed = sorted(entry for arena in allocator._arenas.values() for entry in arena.free)
    assert listed == sorted((b.size, b.address) for b in blocks if b.state == FREE)


@pytest.mark.parametrize("policy", MAKERS)
@settings(max_examples=60, deadline=None)
@given(program=PROGRAMS)
def test_blocks_never_overlap_and_counts_are_sums(policy: str, program: list[tuple[str, int, int]]):
    allocator = MAKERS[policy]()

    live = run(allocator, program)

    check_layout(allocator)
    assert allocator.requested_bytes == sum(live.values())
    assert all(allocator.size_of(address) >= size for address, size in live.items())
    assert allocator.peak_reserved_bytes <= LIMIT
    assert allocator.reserved_bytes >= allocator.allocated_bytes >= allocator.requested_bytes


@pytest.mark.parametrize("policy", MAKERS)
@settings(max_examples=40, deadline=None)
@given(program=PROGRAMS)
def test_freeing_all_merges_every_split_again(policy: str, program: list[tuple[str, int, int]]):
    allocator = MAKERS[policy]()

    for address in run(allocator, program):
        allocator.free(address)

    check_layout(allocator)
    assert allocator.allocated_bytes == allocator.requested_bytes == 0
    mapped = [[b for b in s.blocks if b.state != UNMAPPED] for s in allocator.segments()]
    assert policy == "expandable" or all(len(blocks) == 1 for blocks in mapped)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


@settings(max_examples=40, deadline=None)
@given(program=PROGRAMS)
def test_a_restored_layout_continues_as_the_original(program: list[tuple[str, int, int]]):
    original = NativeAllocator()
    live = run(original, program)
    restored = NativeAllocator()
    for segment in original.segments():
        restored.restore(segment)

    for allocator in (original, restored):
        for address in list(live)[::2]:
            allocator.free(address)

    assert restored.segments() == original.segments()
    assert restored.reserved_bytes == original.reserved_bytes
