"""How large is the page of a long run, of one rank and of many?

python tests/benchmarks/page_size.py [--steps 1000000]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from leakcheck.report import render
from leakcheck.runtime.merge import merge
from leakcheck.runtime.recording import DENSE_STEPS, FORMAT, SPACING, read_recordings

CATEGORIES = ("parameters", "gradients", "optimizer state", "temporaries", "unexplained")


def recorded_steps(steps: int) -> Iterator[int]:
    """Yield the steps that a recorder writes of so many."""
    step = 1
    while step <= steps:
        yield step
        step += 1 + (int(step * SPACING) if step > DENSE_STEPS else 0)


def sample(step: int, slope: int) -> dict[str, object]:
    readings = {
        "host.rss": (300 << 20) + 8 * step,
        "host.heap": (200 << 20) + slope * step + step * 7919 % 5003,
        "python.blocks": 250_000 + step * 31 % 97,
        "threads": 8,
        "descriptors": 40,
        "processes": 1,
        "graph.nodes": 40 + slope * step // 700,
        "tensors": 34,
        "cuda:0.allocated": (3 << 30) + slope * step,
        "cuda:0.reserved": (4 << 30) + slope * step,
        "cuda:0.external": 500 << 20,
    }
    readings |= {f"cuda:0.memory.{name}": (1 << 29) + step * 13 % 1009 for name in CATEGORIES}
    return {"type": "sample", "step": step, "elapsed_s": step / 50, "readings": readings}


def page_bytes(steps: int, ranks: int) -> int:
    """Write the recordings of a run, read them, and return the size of their page."""
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            header = {"type": "run", "format": FORMAT, "command": "train.py", "rank": rank}
            slope = 700 if rank == 1 else 0
            lines = [header | {"world_size": ranks}]
            lines += [sample(step, slope) for step in recorded_steps(steps)]
            path = Path(folder) / f"rank-{rank:05d}.jsonl"
            path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return len(render(merge(read_recordings(Path(folder))), "html").encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    steps = parser.parse_args().steps
    for ranks in (1, 8, 64):
        print(f"{steps:,} steps, {ranks:2} ranks: {page_bytes(steps, ranks) / 1e3:,.0f} kB")
