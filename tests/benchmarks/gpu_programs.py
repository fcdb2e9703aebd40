"""Are verdicts as right on a CUDA device as on the host? The whole programs, their tensors on it.

    python tests/benchmarks/gpu_programs.py [--jobs N] [--limit-s S] [--out OUT.json] [NAME ...]

Each program of tests/runtime/programs is run with `torch.set_default_device("cuda")` on the line
that imports torch, so that line numbers stay; first bare, and a program that cannot run there
(it makes arrays of its tensors) is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

from runtime_scoreboard import PROGRAMS, expected_of, rate_error, right_holder, right_line

DEVICE = os.environ.get("LEAKCHECK_PROGRAMS_DEVICE", "cuda")
IMPORT = re.compile(r"^(?:import|from) torch\b.*$", re.MULTILINE)
MOVES = f'; import torch as _torch; _torch.set_default_device("{DEVICE}")'
SHUFFLES, BY_DEVICE = "shuffle=True", f'shuffle=True, generator=_torch.Generator("{DEVICE}")'
LIMIT_S = 90


def moved(program: Path) -> str | None:
    """The source with its tensors on the device; None where torch is not imported in a line."""
    source = program.read_text()
    moving, count = IMPORT.subn(lambda line: line[0] + MOVES, source, count=1)
    return moving.replace(SHUFFLES, BY_DEVICE) if count else None


def judged(program: Path) -> dict[str, Any]:
    """Run one program bare, then under the sentinel, and say what was told."""
    row: dict[str, Any] = {"name": f"{program.parent.name}/{program.stem}"}
    source = moved(program)
    if source is None:
        return row | {"left_out": "imports no torch"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, target = folder / program.name, folder / "report.json"
        path.write_text(source)
        bare = _run([sys.executable, str(path)], folder)
        if bare.returncode:
            return row | {"left_out": (bare.stderr.splitlines() or ["killed"])[-1][:100]}
        command = [sys.executable, "-m", "leakcheck", "run", "--json", str(target), str(path)]
        done = _run(command, folder)
        if not target.is_file():
            return row | {"verdict": "none", "told": done.stderr[-300:]}
        report: dict[str, Any] = json.loads(target.read_text())
    return row | _told(report, program)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"took more than {LIMIT_S} s")


def _told(report: dict[str, Any], program: Path) -> dict[str, Any]:
    suspect = next(iter(report["suspects"]), {})
    device = {
        trend["resource"]: [trend["verdict"], trend["per_step"]]
        for trend in report["trends"]
        if trend["resource"].startswith("cuda")
    }
    told = {
        "verdict": report["verdict"],
        "steps": report["run"]["steps"],
        "reason": report["reason"],
        "kind": suspect.get("kind", ""),
        "lines": [(place["line"], place["code"]) for place in suspect.get("locations", [])],
        "holder": suspect.get("holder", ""),
        "device": device,
        "overhead": report.get("overhead"),
    }
    if program.parent.name == "leaking":
        expected = expected_of(program)
        told |= {
            "kind_is_right": suspect.get("kind") == expected.kind,
            "line_is_right": right_line(report, expected),
            "holder_is_right": right_holder(report, expected),
            "rate_error": rate_error(report, expected),
        }
    return told


def main() -> int:
    """Print a row for each program, and write them all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=3600)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    began_s = monotonic()
    programs = [
        path
        for folder in ("leaking", "clean")
        for path in sorted((PROGRAMS / folder).glob("*.py"))
        if not options.names or path.stem in options.names
    ]

    def one(program: Path) -> dict[str, Any] | None:
        return judged(program) if monotonic() - began_s < options.limit_s else None

    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(one, programs):
            if row is None:
                continue
            rows.append(row)
            print(json.dumps(row), flush=True)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
