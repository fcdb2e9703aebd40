"""How much of the memory is expected and how much is not: by category, and what grew each step.

Made from the readings by category of the checkpoints, so it costs the program nothing. The host is
told beside the devices: its total is the heap in use, and what no tensor accounts for (the graph,
Python's objects, libraries) is unexplained there.
"""

from __future__ import annotations

from dataclasses import replace

from leakcheck.memory.ledger import CATEGORIES, CATEGORY_MARK, END_OF_STEP
from leakcheck.model import DeviceMemory, LedgerPage, LedgerRow, MemoryGrowth, Trend
from leakcheck.runtime.judgement.judge import read
from leakcheck.runtime.readings.categories import is_category, resource_of
from leakcheck.runtime.readings.meters import in_use_at
from leakcheck.runtime.readings.series import Series

SURE = 0.01  # of a category's rise, where the memory of its place was found to grow
LEAST_SHARE = 0.01  # of the place's growth, for a category
LEAST_REST = 0.1  # for what is unexplained: the total and the parts are measured apart


def explained(
    slow: Series,
    quick: dict[str, int],
    trends: tuple[Trend, ...],
    after: int,
    looked_at: tuple[DeviceMemory, ...] = (),
) -> tuple[DeviceMemory, ...]:
    """Explain each place by its first and its last checkpoint beyond the step `after`.

    `quick` are the newest quick readings, `trends` what the report says: a category is told to grow
    only where the memory of its place does. What an attribution window saw of a device
    (`looked_at`) is finer, block by block with the places, and is told instead.
    """
    finer = {memory.device: memory for memory in looked_at}
    rows = [row for row in slow.rows() if row[0] > after and any(map(is_category, row[2]))]
    if len(rows) < 2:
        return looked_at
    places = {name.partition(CATEGORY_MARK)[0]: None for name in rows[-1][2] if is_category(name)}
    (first, _, before), (last, _, now) = rows[0], rows[-1]
    pages = ((_page(place, first, before, {}), _page(place, last, now, quick)) for place in places)
    told = (_explained(slow, after, *each, trends) for each in zip(places, pages, strict=True))
    refined = [(memory, finer.pop(memory.device, memory)) for memory in told]
    explained = (replace(one, page=other.page, grown=other.grown) for one, other in refined)
    return (*explained, *finer.values())


def _explained(
    slow: Series,
    after: int,
    place: str,
    pages: tuple[LedgerPage, LedgerPage],
    trends: tuple[Trend, ...],
) -> DeviceMemory:
    first, last = pages
    total = in_use_at(place)
    growing = (t.per_step for t in trends if t.resource == total and t.verdict == "growing")
    per_step = next(growing, 0.0)
    # the host's heap holds the interpreter and the libraries: at first they are expected
    unexplained = 0 if place == "host" else first.size_bytes("unexplained")
    return DeviceMemory(
        device=place,
        measured="device",
        page=last,
        expected_bytes=first.allocated_bytes - unexplained,
        unexpected_per_step=per_step,
        grown=_grown(place, slow, after, per_step) if per_step else (),
    )


def _page(place: str, step: int, readings: dict[str, int], quick: dict[str, int]) -> LedgerPage:
    sizes = [(name, readings.get(resource_of(place, name))) for name in CATEGORIES]
    rows = tuple(LedgerRow(name, size, 0) for name, size in sizes if size is not None)
    reserved = "host.rss" if place == "host" else f"{place}.reserved"
    return LedgerPage(
        phase=END_OF_STEP,
        step=step,
        rows=rows,
        allocated_bytes=sum(row.size_bytes for row in rows),
        reserved_bytes=quick.get(reserved, 0),
    )


def _grown(place: str, slow: Series, after: int, per_step: float) -> tuple[MemoryGrowth, ...]:
    grown = []
    for category in CATEGORIES[:-1]:
        reading = read(slow, resource_of(place, category), after)
        if reading is None or reading.line.low <= 0 or reading.line.p > SURE:
            continue
        if reading.line.per_step >= LEAST_SHARE * per_step:
            grown.append(MemoryGrowth(category, "", reading.line.per_step))
    rest = per_step - sum(growth.bytes_per_step for growth in grown)
    if rest >= LEAST_REST * per_step:
        grown.append(MemoryGrowth("unexplained", "", rest))
    return tuple(sorted(grown, key=lambda growth: -growth.bytes_per_step))
