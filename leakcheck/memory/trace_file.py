"""Allocation traces on disk: JSON, plain or gzipped, one object with a trace for each name.

    {"a run": {"events": [["a", 140, 4096], ["f", 140, 4096]],
               "init_segments": [[address, size, small]], "init_blocks": [[address, size, asked]]}}

Event kinds: a alloc, f free, S segment allocated or mapped, F segment freed or unmapped, E cache
emptied, n snapshot (ignored). An event may go on with stream, pool [2] and site index; a segment
with stream, pool and expandable. Optional: "marks" [[event, label, step]], "sites" [text],
"settings" {}, "final_allocated", "final_reserved".
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from leakcheck.errors import RecordingError
from leakcheck.memory.blocks import DEFAULT_POOL, UNMAPPED, SegmentView
from leakcheck.memory.expandable import address_ranges
from leakcheck.memory.initial import SegmentSpan, initial_segments
from leakcheck.memory.trace import Event, EventKind, Mark, Trace
from leakcheck.writing import replace_file

KINDS: Final[dict[str, EventKind]] = {
    "a": "alloc",
    "f": "free",
    "S": "segment_alloc",
    "F": "segment_free",
    "E": "empty_cache",
}
_Made = TypeVar("_Made")
_LETTERS: Final = {kind: letter for letter, kind in KINDS.items()}
LARGEST_BYTES: Final = 1 << 42  # no device holds a block of more
_GZIP_MAGIC: Final = b"\x1f\x8b"
_LARGEST_TEXT_BYTES: Final = 4 << 30  # a gzip bomb stops here


class _StoredTrace(msgspec.Struct):
    """The shape of one trace in the file; msgspec checks it and names what is wrong."""

    events: list[list[Any]]
    init_segments: list[list[Any]] = []
    init_blocks: list[tuple[int, int, int]] = []
    marks: list[tuple[int, str, int]] = []
    sites: list[str] = []
    settings: dict[str, Any] = {}
    final_allocated: int | None = None
    final_reserved: int | None = None


def read_traces(path: Path) -> tuple[Trace, ...]:
    """Read every trace of a JSON or JSON.gz file. Raises RecordingError, in one line."""
    content = read_bytes(path)
    try:
        stored = msgspec.json.decode(content, type=dict[str, _StoredTrace])
        traces = tuple(_trace(name, each) for name, each in stored.items())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"{path}: no allocation trace: {error}") from None
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise RecordingError(f"{path}: an event or segment cannot be read: {error}") from None
    if not traces:
        raise RecordingError(f"{path}: holds no trace")
    return traces


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write traces so that `read_traces` reads them back; gzipped when the name ends in .gz."""
    text = json.dumps({trace.name: _stored(trace) for trace in traces}, separators=(",", ":"))
    content = text.encode()
    replace_file(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def read_bytes(path: Path) -> bytes:
    """The file's bytes, unzipped where it is gzipped. Raises RecordingError."""
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP_MAGIC):
            unzipper = zlib.decompressobj(wbits=31)
            content = unzipper.decompress(content, _LARGEST_TEXT_BYTES)
            if not unzipper.eof:
                raise RecordingError(f"{path}: broken gzip file: it is truncated or too large")
    except zlib.error as error:
        raise RecordingError(f"{path}: broken gzip file: {error}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(f"{path}: cannot be read: {reason}") from None
    if not content:
        raise RecordingError(f"{path}: is empty")
    return content


def _trace(name: str, stored: _StoredTrace) -> Trace:
    events = tuple(_row(_event, row) for row in stored.events if row[:1] != ["n"])
    live = {address: (size, asked) for address, size, asked in stored.init_blocks}
    spans = [_row(_span, row) for row in stored.init_segments]
    return Trace(
        events=events,
        initial=address_ranges(initial_segments(spans, live, ()), spans),
        marks=_marks(stored.marks, len(events)),
        sites=tuple(stored.sites),
        name=name,
        settings=stored.settings,
        final_allocated_bytes=stored.final_allocated,
        final_reserved_bytes=stored.final_reserved,
    )


def _row(make: Callable[..., _Made], fields: list[Any]) -> _Made:
    if not 2 <= len(fields) <= 6:  # of an event as of a segment
        raise ValueError(f"it has {len(fields)} fields, not two to six")
    return make(*fields)


def _marks(rows: list[tuple[int, str, int]], events: int) -> tuple[Mark, ...]:
    for at, label, _ in rows:
        if not 0 <= at <= events:
            raise ValueError(f'mark "{label}" is before event {at}, of {events}')
    return tuple(sorted(Mark(*row) for row in rows))


def _event(
    letter: str,
    block: int,
    size: int = 0,
    stream: int = 0,
    pool: Iterable[int] = DEFAULT_POOL,
    site: int = -1,
) -> Event:
    if letter not in KINDS:
        raise ValueError(f'unknown event kind "{letter}"')
    if not all(isinstance(number, int) for number in (block, size, stream, site)):
        raise ValueError(f"event {letter} needs whole numbers, not {block!r}, {size!r}")
    if not 0 <= size <= LARGEST_BYTES:
        raise ValueError(f"event {letter} has an impossible size, {size}")
    first, second = pool
    return Event(KINDS[letter], block, size, stream, (int(first), int(second)), site)


def _span(
    address: int,
    size: int,
    small: bool = False,
    stream: int = 0,
    pool: Iterable[int] = DEFAULT_POOL,
    expandable: bool = False,
) -> SegmentSpan:
    if not 0 <= size <= LARGEST_BYTES:
        raise ValueError(f"a segment has an impossible size, {size}")
    first, second = pool
    return SegmentSpan(
        int(address), int(size), stream, (int(first), int(second)), bool(small), expandable
    )


def _stored(trace: Trace) -> dict[str, Any]:
    stored: dict[str, Any] = {
        "init_segments": [row for s in trace.initial for row in _segment_rows(s)],
        "init_blocks": [[v.address, v.size, v.requested] for v in trace.initial_blocks()],
        "events": [_event_row(event) for event in trace.events],
        "final_allocated": trace.final_allocated_bytes,
        "final_reserved": trace.final_reserved_bytes,
    }
    optional = {"marks": trace.marks, "sites": trace.sites, "settings": trace.settings}
    return stored | {key: value for key, value in optional.items() if value}


def _event_row(event: Event) -> list[Any]:
    row: list[Any] = [_LETTERS[event.kind], event.block, event.size]
    if event.stream or event.pool != DEFAULT_POOL or event.site >= 0:
        row += [event.stream, event.pool, event.site]
    return row


def _segment_rows(segment: SegmentView) -> Iterator[list[Any]]:
    """One row, or one for each mapped stretch of an expandable segment."""
    expandable = any(view.state == UNMAPPED for view in segment.blocks)
    more = [segment.stream, segment.pool, expandable]
    plain = segment.stream == 0 and segment.pool == DEFAULT_POOL and not expandable
    for mapped, views in groupby(segment.blocks, lambda view: view.state != UNMAPPED):
        stretch = list(views)
        if mapped:
            size = sum(view.size for view in stretch)
            yield [stretch[0].address, size, segment.small, *([] if plain else more)]
