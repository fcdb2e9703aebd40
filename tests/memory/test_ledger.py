from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakcheck.memory.ledger import CATEGORIES, LiveBlock, device_memory, explain, write_page
from leakcheck.memory.workspaces import known_sizes
from leakcheck.model import LedgerPage, LedgerRow, MemoryGrowth
from leakcheck.report.picture import pages_svg


def page(step: int, *blocks: LiveBlock, owners: dict[int, str] | None = None) -> LedgerPage:
    return write_page(blocks, owners or {}, phase="after optimizer", step=step)  # type: ignore[arg-type]


@st.composite
def blocks_and_owners(draw: st.DrawFn) -> tuple[list[LiveBlock], dict[int, str]]:
    sizes = draw(st.lists(st.tuples(st.integers(1, 9000), st.integers(0, 4)), max_size=20))
    blocks, at = [], 512
    for requested, gap in sizes:
        size = -(-requested // 512) * 512
        blocks.append(LiveBlock(at, size, requested))
        at += size + gap * 512
    inside = st.integers(0, at + 1000)
    return blocks, draw(st.dictionaries(inside, st.sampled_from(CATEGORIES), max_size=20))


@settings(deadline=None)
@given(blocks_and_owners())
def test_the_rows_sum_to_the_allocated_bytes(given: tuple[list[LiveBlock], dict[int, str]]):
    blocks, owners = given

    written = page(0, *blocks, owners=owners)

    assert sum(row.size_bytes for row in written.rows) == written.allocated_bytes
    assert written.allocated_bytes == sum(block.size_bytes for block in blocks)
    assert sum(row.blocks for row in written.rows) == len(blocks)


def test_a_block_is_claimed_once_by_the_earlier_category():
    shared = LiveBlock(1024, 1024, 800)

    written = page(0, shared, owners={1024: "inputs", 1024 + 256: "parameters", 9999: "buffers"})

    assert written.rows == (
        LedgerRow("parameters", 800, 1),
        LedgerRow("rounding and slop", 224, 0),
    )


@pytest.mark.parametrize(
    ("block", "category"),
    [
        (LiveBlock(0, 8_519_680, 8_519_680), "workspaces"),
        (LiveBlock(0, 33_554_432, 33_554_432), "workspaces"),
        (LiveBlock(0, 1024, 1024, workspace=True), "workspaces"),
        (LiveBlock(0, 1024, 1024), "unexplained"),
    ],
)
def test_what_nobody_owns_is_a_workspace_or_unexplained(block: LiveBlock, category: str):
    assert page(0, block).rows == (LedgerRow(category, block.requested_bytes, 1),)  # type: ignore[arg-type]


def test_there_are_as_many_cublaslt_workspaces_as_cublas_ones_and_the_rest_is_a_leak():
    handles = [LiveBlock(n << 26, 33_554_432, 33_554_432) for n in (1, 2)]
    leaked = [LiveBlock(n << 20, 1 << 20, 1 << 20) for n in range(5)]

    assert page(0, *handles, *leaked).rows == (
        LedgerRow("workspaces", 2 * 33_554_432 + 2 * (1 << 20), 4),
        LedgerRow("unexplained", 3 * (1 << 20), 3),
    )


def test_a_mebibyte_without_a_cublas_workspace_is_unexplained():
    assert page(0, LiveBlock(0, 1 << 20, 1 << 20)).rows == (LedgerRow("unexplained", 1 << 20, 1),)


def test_workspaces_of_configured_sizes_are_recognised():
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
    blocks = [LiveBlock(n << 26, size, size) for n, size in enumerate((131_072, 65_536, 8_519_680))]

    told = write_page(blocks, {}, phase="after forward", workspaces=known_sizes(environment))

    assert told.rows == (
        LedgerRow("workspaces", 196_608, 2),
        LedgerRow("unexplained", 8_519_680, 1),
    )


def test_growth_is_told_by_category_and_place():
    model = LiveBlock(0, 4096, 4096, "model.py:3 build")
    losses = [LiveBlock(8192 + 512 * n, 512, 512, "train.py:9 step") for n in range(10)]
    before = page(2, model, *losses[:2], owners={0: "parameters"})
    after = page(10, model, *losses, owners={0: "parameters"})

    assert explain(before, after) == (MemoryGrowth("unexplained", "train.py:9 step", 512.0),)


def test_growth_without_a_place_is_told_too():
    before = page(0, LiveBlock(0, 512, 512))
    after = page(4, LiveBlock(0, 512, 512), LiveBlock(1024, 4096, 4096))

    assert explain(before, after) == (MemoryGrowth("unexplained", "", 1024.0),)


def test_a_block_that_replaces_another_is_no_growth():
    before = page(0, LiveBlock(0, 512, 512, "train.py:4 step"))
    after = page(5, LiveBlock(9216, 512, 512, "train.py:4 step"))

    assert explain(before, after) == ()


def test_pages_of_different_phases_are_not_compared():
    other = write_page([], {}, phase="after forward", step=5)

    with pytest.raises(
        ValueError, match="cannot compare after optimizer of step 0 with after forw"
    ):
        explain(page(0), other)


def test_what_the_first_page_explains_is_expected():
    model, stray = LiveBlock(0, 4096, 4096), [LiveBlock(8192 + 512 * n, 512, 512) for n in range(9)]
    pages = [page(n, model, *stray[: n + 1], owners={0: "parameters"}) for n in range(9)]

    told = device_memory(pages, device="cuda:0")

    assert told is not None
    assert (told.expected_bytes, told.unexpected_bytes) == (4096, 9 * 512)
    assert told.unexpected_per_step == 512
    assert told.grown == (MemoryGrowth("unexplained", "", 512.0),)


def test_a_prediction_takes_the_place_of_the_first_page():
    pages = [page(n, LiveBlock(0, 4096, 4096), owners={0: "parameters"}) for n in range(3)]

    told = device_memory(pages, device="cuda:0", expected=1024)

    assert told is not None
    assert (told.unexpected_bytes, told.unexpected_per_step) == (3072, 0)


def test_one_page_tells_nothing_of_growth():
    assert device_memory([page(0)], device="cuda:0") is None


def test_predicted_pages_are_stacked_beside_the_measured_total():
    measured = [page(0, LiveBlock(0, 4096, 4000))]
    predicted = [page(0, LiveBlock(0, 4096, 4000), owners={0: "parameters"})]

    drawn = pages_svg("one step", measured, predicted)

    assert "<title>parameters: 4,000 B</title>" in drawn
    assert "<title>measured: 4,096 B</title>" in drawn
    assert "0: after optimizer" in drawn
