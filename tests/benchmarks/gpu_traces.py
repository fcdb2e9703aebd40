"""Programs whose allocations gpu_capture.py records under different allocator settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from gpu_loops import LOOPS, Attention, Loop, tokens, training
from gpu_sections import origin
from torch import nn

from leakcheck.memory.blocks import SegmentView
from leakcheck.memory.snapshot import snapshot_traces
from leakcheck.memory.trace import Trace
from leakcheck.memory.trace_file import write_traces

MIB = 1 << 20
LENGTHS = (64, 96, 320, 128, 288, 80)  # of the sequences that the collector's program trains on
TRACED_LOOPS = ("mlp", "cnn", "transformer", "transformer-amp", "lstm")


def capture_trace(section: str, out: Path) -> None:
    """Record the allocator from its first block on, and write the traces without frames."""
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(context=None, stacks="python", max_entries=200_000)
    kept = TRACES.get(section, _train_all)()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    del kept
    (trace,) = snapshot_traces(snapshot)
    settings = {k: v for k, v in trace.settings.items() if isinstance(v, (bool, int, float, dict))}
    named = replace(
        trace, name=section, sites=(), settings=settings | {"origin": str(origin())},
        events=tuple(event._replace(site=-1) for event in trace.events),
    )  # fmt: skip
    write_traces(out / f"{section}.json.gz", [_normalised(named)])


def _normalised(trace: Trace) -> Trace:
    """Addresses and streams from small numbers on: they tell nothing, and compress better."""
    streams = {s: n for n, s in enumerate(sorted({e.stream for e in trace.events} | {0}))}
    events = tuple(e._replace(stream=streams[e.stream]) for e in trace.events)

    def renamed(segment: SegmentView) -> SegmentView:
        return replace(segment, stream=streams.get(segment.stream, 0))

    return replace(trace, events=events, initial=tuple(map(renamed, trace.initial)))


def _train_all() -> None:
    for name in TRACED_LOOPS:
        _train(LOOPS[name])


def _train(loop: Loop, steps: int = 3) -> None:
    model, optimizer = loop.make("cuda")
    for phase, _, _, _ in training(loop, "cuda", steps, model, optimizer):
        _tell(phase)
    _tell("")


def _tell(phase: str) -> None:
    tell = getattr(torch.cuda.memory, "_set_memory_metadata", None)
    if tell is not None:
        tell(phase)


def _limit(size: int) -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(size / total)


def _with_collector() -> None:
    _limit(640 * MIB)
    train_lengths()


def train_lengths() -> None:
    """Train a model on each length."""
    for length in LENGTHS:
        _train(Loop(Attention, tokens(8, length)), 2)


def _streams() -> None:
    side = torch.cuda.Stream()
    for _ in range(20):
        x = torch.randn(4 * MIB // 4, device="cuda")
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.current_stream())
            y = x * 2
            x.record_stream(side)
        del x
        z = torch.randn(3 * MIB // 4, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        del y, z
    torch.cuda.synchronize()


def _graph() -> list[object]:
    """The graphs, which must live until the snapshot: it tells which pool an address is of."""
    model, x = nn.Linear(512, 512).cuda(), torch.randn(64, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    graphs: list[object] = []
    for _ in range(3):  # captured again and again: each graph keeps a pool of its own
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(x)
        graph.replay()
        graphs.append(graph)
        del out
    torch.cuda.synchronize()
    return graphs


def _out_of_memory() -> None:
    _limit(2048 * MIB)
    kept = []
    try:
        for number in itertools.count(1):
            kept.append(torch.empty(48 * MIB, dtype=torch.uint8, device="cuda"))
            if number % 3 == 0:
                del kept[len(kept) // 2]
    except torch.OutOfMemoryError:
        pass


TRACES: dict[str, Callable[[], list[object] | None]] = {
    "trace-gc": _with_collector,
    "trace-streams": _streams,
    "trace-graph": _graph,
    "trace-oom": _out_of_memory,
}
