"""How many events a second each policy replays, over the recorded traces.

python tests/benchmarks/replay_speed.py
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from leakcheck.memory.policies import POLICIES
from leakcheck.memory.replay import replay, reproduce
from leakcheck.memory.trace import Trace
from leakcheck.memory.trace_file import read_traces

TRACES = Path(__file__).resolve().parent.parent / "data" / "alloc_traces.json.gz"
ROUNDS = 5


def main() -> None:
    """Print the best of five rounds for each policy, and the exact replay."""
    traces = read_traces(TRACES)
    events = sum(len(trace.events) for trace in traces)
    print(f"{len(traces)} traces, {events:,} events")
    runs = {name: lambda t, p=policy: replay(t, p(None)) for name, policy in POLICIES.items()}
    for name, run in {"exact replay": reproduce, **runs}.items():
        best_s = min(_timed(run, traces) for _ in range(ROUNDS))
        print(f"{name:<14}{events / best_s:>12,.0f} events/s")


def _timed(run: Callable[[Trace], object], traces: Sequence[Trace]) -> float:
    start = time.perf_counter()
    for trace in traces:
        run(trace)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
