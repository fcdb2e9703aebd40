"""The ledger: every live block of a device in exactly one category, at a phase of a step.

`write_page` is pure: blocks and owners in, a `LedgerPage` out whose rows sum to the allocated bytes
by construction. `explain` compares two pages of the same phase. `watch.py` fills them from torch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from leakcheck.memory.rounding import ALIGN_BYTES
from leakcheck.memory.workspaces import WorkspaceSizes, known_sizes
from leakcheck.model import Category, DeviceMemory, LedgerPage, LedgerRow, MemoryGrowth

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
CATEGORY_MARK: Final = ".memory."  # in the name of a reading: "host.memory.gradients"
END_OF_STEP: Final = "end of a step"  # the phase at which growth is looked for
_USUAL_WORKSPACES: Final = known_sizes({})


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """A live block: `size_bytes` is what it counts for, `requested_bytes` what was asked for."""

    address: int
    size_bytes: int
    requested_bytes: int
    site: str = ""
    workspace: bool = False


def write_page(
    blocks: Sequence[LiveBlock],
    owners: Mapping[int, Category],
    *,
    phase: str,
    step: int = 0,
    reserved_bytes: int = 0,
    used_bytes: int | None = None,
    workspaces: WorkspaceSizes = _USUAL_WORKSPACES,
) -> LedgerPage:
    """Assign every block once; `owners` maps addresses inside blocks to categories.

    A block that nobody owns is a workspace when it says so or has the size of one, else
    unexplained. When several addresses fall into one block the earlier category wins.
    """
    by_block = _owned(blocks, owners)
    unowned = [block for block in blocks if block.address not in by_block]
    by_block |= dict.fromkeys(_workspaces(unowned, workspaces), "workspaces")
    sizes = dict.fromkeys(CATEGORIES, 0)
    counts = dict.fromkeys(CATEGORIES, 0)
    places: dict[tuple[Category, str], int] = {}
    for block in blocks:
        category = by_block.get(block.address, "unexplained")
        sizes[category] += block.requested_bytes
        counts[category] += 1
        sizes["rounding and slop"] += block.size_bytes - block.requested_bytes
        key = category, block.site
        places[key] = places.get(key, 0) + block.requested_bytes
    largest = sorted(places.items(), key=lambda item: -item[1])
    return LedgerPage(
        phase=phase,
        step=step,
        rows=tuple(
            LedgerRow(name, sizes[name], counts[name])
            for name in CATEGORIES
            if sizes[name] or counts[name]
        ),
        allocated_bytes=sum(block.size_bytes for block in blocks),
        reserved_bytes=reserved_bytes,
        used_bytes=used_bytes,
        sites=tuple((category, site, size) for (category, site), size in largest if site),
    )


def explain(
    before: LedgerPage, after: LedgerPage, least_bytes: int = ALIGN_BYTES
) -> tuple[MemoryGrowth, ...]:
    """What grew between two pages of the same phase, by category and place, largest first.

    Raises ValueError when the pages are of different phases, or not in order.
    """
    steps = after.step - before.step
    if before.phase != after.phase or steps <= 0:
        raise ValueError(
            f"cannot compare {before.phase} of step {before.step} "
            f"with {after.phase} of step {after.step}"
        )
    placed = _by_site(before), _by_site(after)
    grown: list[MemoryGrowth] = []
    for category in CATEGORIES:
        rise = after.size_bytes(category) - before.size_bytes(category)
        if rise < least_bytes:
            continue
        sites = [key for key in placed[1] if key[0] == category]
        rises = {key[1]: placed[1][key] - placed[0].get(key, 0) for key in sites}
        known = {site: size for site, size in rises.items() if size >= least_bytes}
        grown += [MemoryGrowth(category, site, size / steps) for site, size in known.items()]
        rest = rise - sum(known.values())
        if rest >= least_bytes:
            grown.append(MemoryGrowth(category, "", rest / steps))
    return tuple(sorted(grown, key=lambda growth: -growth.bytes_per_step))


def device_memory(
    pages: Iterable[LedgerPage], *, device: str, traced: bool = False, expected: int | None = None
) -> DeviceMemory | None:
    """Expected and unexpected live bytes of the last page, and what grew since the first.

    `pages` are of one phase and of settled steps, in order; `expected` is a prediction for that
    phase, else what the first page explains. None with fewer than two pages.
    """
    ordered = tuple(pages)
    if len(ordered) < 2:
        return None
    first, last = ordered[0], ordered[-1]
    rise = last.allocated_bytes - first.allocated_bytes
    explained = first.allocated_bytes - first.size_bytes("unexplained")
    return DeviceMemory(
        device=device,
        measured="traced" if traced else "device",
        page=last,
        expected_bytes=explained if expected is None else expected,
        unexpected_per_step=rise / (last.step - first.step),
        grown=explain(first, last),
    )


def _owned(blocks: Sequence[LiveBlock], owners: Mapping[int, Category]) -> dict[int, Category]:
    """Block address -> category; most owners sit at the start of their block."""
    owned: dict[int, Category] = {}
    ordered = sorted(blocks, key=lambda block: block.address)
    starts = [block.address for block in ordered]
    for address, category in owners.items():
        at = bisect_right(starts, address) - 1
        if at < 0 or address >= starts[at] + max(ordered[at].size_bytes, 1):
            continue
        claimed = owned.get(starts[at])
        if claimed is None or CATEGORIES.index(category) < CATEGORIES.index(claimed):
            owned[starts[at]] = category
    return owned


def _workspaces(unowned: Sequence[LiveBlock], sizes: WorkspaceSizes) -> Iterator[int]:
    """The addresses of the workspaces among blocks that nobody owns.

    Tensors often have the size of a cuBLASLt workspace, 1 MiB; there are as many workspaces of it
    as cuBLAS has, one for each handle and stream, and what goes beyond is no workspace.
    """
    handles = sum(block.requested_bytes in sizes.cublas for block in unowned)
    for block in sorted(unowned, key=lambda block: (not block.workspace, block.address)):
        if block.requested_bytes == sizes.cublaslt and handles:
            handles -= 1
            yield block.address
        elif block.workspace or block.requested_bytes in sizes.cublas:
            yield block.address


def _by_site(page: LedgerPage) -> dict[tuple[Category, str], int]:
    return {(category, site): size for category, site, size in page.sites}
