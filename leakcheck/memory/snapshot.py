"""A `torch.cuda.memory` snapshot, read without running anything in it.

The file is a pickle. Only builtin containers, numbers and strings are admitted: a pickle that names
any class or function is refused before it is looked up. Fields differ between torch versions; what
is absent gets its default.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from leakcheck.errors import RecordingError
from leakcheck.memory.blocks import DEFAULT_POOL, PoolId, SegmentView
from leakcheck.memory.expandable import address_ranges
from leakcheck.memory.initial import SegmentSpan, initial_segments
from leakcheck.memory.sites import SiteTable
from leakcheck.memory.steps import Annotation, annotation_marks, metadata_marks, optimizer_marks
from leakcheck.memory.trace import Event, EventKind, Trace
from leakcheck.memory.trace_file import LARGEST_BYTES, read_bytes, read_traces

_KINDS: Final[dict[str, EventKind]] = {
    "alloc": "alloc",
    "free_completed": "free",
    "segment_alloc": "segment_alloc",
    "segment_map": "segment_alloc",
    "segment_free": "segment_free",
    "segment_unmap": "segment_free",
}
# What a broken stream makes the unpickler raise; it documents none of them.
_BROKEN: Final = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError,
    AttributeError, OverflowError, MemoryError, RecursionError, ImportError, SystemError,
)  # fmt: skip


_Device = Annotated[int, msgspec.Meta(ge=0, lt=1024)]
_Address = Annotated[int, msgspec.Meta(ge=0)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_BYTES)]


class _Block(msgspec.Struct):
    size: _Bytes
    state: str
    requested_size: _Bytes | None = None
    address: _Address | None = None


class _Segment(msgspec.Struct):
    address: _Address
    total_size: _Bytes
    blocks: list[_Block]
    device: _Device = 0
    stream: int = 0
    segment_type: str = "large"
    segment_pool_id: tuple[int, int] = DEFAULT_POOL
    is_expandable: bool = False


class _TraceEntry(msgspec.Struct):
    action: str
    addr: _Address = 0
    size: _Bytes = 0
    stream: int = 0
    time_us: int = 0
    pool_id: tuple[int, int] | None = None
    user_metadata: Any = ""
    frames: Any = ()


class _Annotation(msgspec.Struct):
    name: str = ""
    stage: str = ""
    time_us: int = 0
    device: int = 0


class _Snapshot(msgspec.Struct):
    segments: list[_Segment]
    device_traces: list[list[_TraceEntry]] = []
    allocator_settings: dict[str, Any] = {}
    external_annotations: list[_Annotation] = []


class _BuiltinsOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def load(path: Path) -> tuple[Trace, ...]:
    """Read a snapshot or a trace file, one trace for each device that was used.

    Raises RecordingError, in one line, for a file that is missing, empty, truncated, hostile or
    something else.
    """
    content = read_bytes(path)
    if content.lstrip()[:1] == b"{":
        return read_traces(path)
    traces = snapshot_traces(unpickle(content, str(path)), str(path))
    if not traces:
        raise RecordingError(f"{path}: the snapshot holds no segment and no event")
    return traces


def unpickle(content: bytes, name: str) -> object:
    """Unpickle builtins only. Raises RecordingError."""
    try:
        return _BuiltinsOnly(io.BytesIO(content)).load()
    except _BROKEN as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RecordingError(f"{name}: not a memory snapshot: {reason}") from None


def snapshot_traces(snapshot: object, name: str = "snapshot") -> tuple[Trace, ...]:
    """Turn what `torch.cuda.memory._snapshot()` returns into traces. Raises RecordingError."""
    try:
        read = msgspec.convert(snapshot, _Snapshot, strict=True)
        return tuple(_traces(read))
    except (msgspec.ValidationError, RecursionError) as error:
        raise RecordingError(f"{name}: not a memory snapshot: {error}") from None
    except ValueError as error:
        raise RecordingError(f"{name}: the snapshot contradicts itself: {error}") from None


def _traces(read: _Snapshot) -> Iterator[Trace]:
    devices = max((s.device + 1 for s in read.segments), default=0)
    for device in range(max(devices, len(read.device_traces))):
        segments = [s for s in read.segments if s.device == device]
        entries = read.device_traces[device] if device < len(read.device_traces) else []
        if segments or entries:
            annotations = [a for a in read.external_annotations if a.device == device]
            label = f"device {device}"
            yield _trace(label, segments, entries, read.allocator_settings, annotations)


def _trace(
    name: str,
    segments: Sequence[_Segment],
    entries: Sequence[_TraceEntry],
    settings: Mapping[str, Any],
    annotations: Sequence[_Annotation],
) -> Trace:
    sites, pool_of = SiteTable(), _pool_finder(segments)
    kept = [entry for entry in entries if entry.action in _KINDS]
    events = tuple(
        Event(
            _KINDS[entry.action],
            entry.addr,
            entry.size,
            entry.stream,
            entry.pool_id or pool_of(entry.addr),
            sites.index(entry.frames) if entry.action == "alloc" else -1,
        )
        for entry in kept
    )
    times = [entry.time_us for entry in kept]
    spoken = [Annotation(a.name, a.stage, a.time_us) for a in annotations]
    stacks = [entry.frames if entry.action == "alloc" else None for entry in kept]
    marks = metadata_marks([entry.user_metadata for entry in kept])
    return Trace(
        events=events,
        initial=_initial(segments, events),
        marks=marks or annotation_marks(spoken, times) or optimizer_marks(stacks),
        sites=tuple(sites.names),
        name=name,
        settings=settings,
        final_allocated_bytes=sum(size for size, _ in _live(segments).values()),
        final_reserved_bytes=sum(segment.total_size for segment in segments),
    )


def _initial(segments: Sequence[_Segment], events: Sequence[Event]) -> tuple[SegmentView, ...]:
    spans = [
        SegmentSpan(
            s.address,
            s.total_size,
            s.stream,
            s.segment_pool_id,
            s.segment_type == "small",
            s.is_expandable,
        )
        for s in segments
    ]
    return address_ranges(initial_segments(spans, _live(segments), events), spans)


def _live(segments: Sequence[_Segment]) -> dict[int, tuple[int, int]]:
    """Address -> (size, requested) of the blocks alive at the end; old torch omits addresses."""
    live = {}
    for segment in segments:
        at = segment.address
        for block in segment.blocks:
            address = at if block.address is None else block.address
            if block.state.startswith("active"):
                asked = block.size if block.requested_size is None else block.requested_size
                live[address] = block.size, asked
            at = address + block.size
    return live


def _pool_finder(segments: Sequence[_Segment]) -> Callable[[int], PoolId]:
    """Private pools of the final segments by address; older events do not name their pool."""
    private = [s for s in segments if s.segment_pool_id != DEFAULT_POOL]

    def find(address: int) -> PoolId:
        for segment in private:
            if segment.address <= address < segment.address + segment.total_size:
                return segment.segment_pool_id
        return DEFAULT_POOL

    return find
