"""What does `leakcheck fix` cost on a program of 60 short steps? Medians of processor time.

python tests/benchmarks/fix_cost.py [REPEATS]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0
for step in range(60):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(float(total))
"""
COMMANDS = (
    ["train.py"],
    ["-m", "leakcheck", "run", "train.py"],
    ["-m", "leakcheck", "fix", "train.py"],
)


def children_s() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def taken_s(arguments: list[str], folder: str) -> float:
    """Run Python once; the processor time that it took."""
    began_s = children_s()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True)
    return children_s() - began_s


def main() -> None:
    """Print the three times, and how often the first two are in the third."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(PROGRAM)
        rows = [[taken_s(each, folder) for each in COMMANDS] for _ in range(repeats)]
    alone_s, run_s, fix_s = map(median, zip(*rows, strict=True))
    print(f"alone {alone_s:.1f} s, leakcheck run {run_s:.1f} s, leakcheck fix {fix_s:.1f} s")
    print(
        f"fix: {fix_s / alone_s:.1f} times the program, {fix_s / run_s:.1f} times its watched run"
    )


if __name__ == "__main__":
    main()
