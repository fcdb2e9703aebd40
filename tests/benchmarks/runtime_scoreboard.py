"""How good is the run-time half? One table over the programs in tests/runtime/programs.

    python tests/benchmarks/runtime_scoreboard.py [--overhead] [NAME ...]

Each leaking program states its kind, holder and rate in its first lines and marks its line
`# leak`. Columns: found with the right kind; right line or holder named first; error of the rate;
steps until the verdict. With --overhead each clean program is also run bare, in alternation.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

PROGRAMS = Path(__file__).parent.parent / "runtime" / "programs"
HEADER = re.compile(r'^# (kind|holder|per_step|unit|notice|torch) = "?([^"\n]*)"?$', re.MULTILINE)
MARK = re.compile(r"# leak\b")
NAMED = 0.02  # a rate that was counted by hand may be off by this and still be called exact


@dataclass(frozen=True, slots=True)
class Expected:
    """What a program's first lines and marks say about it."""

    kind: str
    holder: str
    lines: tuple[int, ...]
    per_step: float | None
    unit: str
    notice: str
    torch: str  # the oldest in which it leaks, "" if it does in any


def expected_of(program: Path) -> Expected:
    """Read a program's header and marks."""
    text = program.read_text()
    header = dict(HEADER.findall(text))
    numbered = enumerate(text.splitlines(), start=1)
    rate = header.get("per_step")
    return Expected(
        kind=header.get("kind", ""),
        holder=header.get("holder", ""),
        lines=tuple(number for number, line in numbered if MARK.search(line)),
        per_step=float(rate) if rate else None,
        unit=header.get("unit", ""),
        notice=header.get("notice", ""),
        torch=header.get("torch", ""),
    )


def watched(program: Path, *options: str, timeout_s: float = 120) -> dict[str, Any]:
    """Run a program under the sentinel and return its report as JSON says it."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.json"
        command = [sys.executable, "-m", "leakcheck", "run", *options, "--json", str(target)]
        done = subprocess.run(
            [*command, str(program)],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        if not target.is_file():
            raise RuntimeError(f"{program.name}: no report\n{done.stdout}\n{done.stderr}")
        report: dict[str, Any] = json.loads(target.read_text())
        return report | {"exit_status": done.returncode, "stdout": done.stdout}


def right_line(report: dict[str, Any], expected: Expected) -> bool:
    """Say whether the first suspect's first line is a marked one."""
    suspects = report["suspects"]
    locations = suspects[0]["locations"] if suspects else []
    return bool(locations) and locations[0]["line"] in expected.lines


def right_holder(report: dict[str, Any], expected: Expected) -> bool:
    """Say whether the first suspect's holder is the one that the program states."""
    suspects = report["suspects"]
    return bool(suspects) and expected.holder in suspects[0]["holder"]


def rate_error(report: dict[str, Any], expected: Expected) -> float | None:
    """Return how far the first suspect's rate is off, as a share; None if nothing is stated."""
    if expected.per_step is None or not report["suspects"]:
        return None
    field = "bytes_per_step" if expected.unit == "B" else "objects_per_step"
    measured = report["suspects"][0][field]
    return None if measured is None else abs(measured / expected.per_step - 1)


def main(names: list[str], overhead: bool) -> None:
    """Print the table."""
    rows = [_leaking(path) for path in _chosen("leaking", names)]
    kinds, places = sum(row[0] for row in rows), sum(row[1] for row in rows)
    rates = [row[2] for row in rows if row[2] is not None]
    alarms = [_clean(path) for path in _chosen("clean", names)]
    print(f"found, right kind     {kinds}/{len(rows)}")
    print(f"right line or holder  {places}/{len(rows)}")
    if rates:
        print(f"rate error            median {median(rates):.1%}, worst {max(rates):.1%}")
    print(f"false alarms          {sum(alarms)}/{len(alarms)}")
    if overhead:
        ratios = [_overhead(path) for path in _chosen("clean", names)]
        print(f"whole runs, watched / bare: median {median(ratios):.3f}")


def _chosen(folder: str, names: list[str]) -> list[Path]:
    return [
        path for path in sorted((PROGRAMS / folder).glob("*.py")) if path.stem in names or not names
    ]


def _leaking(program: Path) -> tuple[bool, bool, float | None]:
    expected, report = expected_of(program), watched(program)
    suspects = report["suspects"]
    kind = bool(suspects) and suspects[0]["kind"] == expected.kind
    line, holder = right_line(report, expected), right_holder(report, expected)
    error = rate_error(report, expected)
    told = "-" if error is None else f"{error:.1%}"
    found = suspects[0]["kind"] if suspects else "-"
    steps = report["run"]["steps"]
    print(
        f"{program.stem:24} {report['verdict']:8} {found:11} {'ok' if kind else 'WRONG':5} "
        f"line {'ok' if line else 'no':3} holder {'ok' if holder else 'no':3} "
        f"rate {told:6} {steps} steps",
        flush=True,
    )
    return kind, line or holder, error


def _clean(program: Path) -> bool:
    report = watched(program)
    alarm = report["verdict"] == "growing"
    reason = "" if report["verdict"] == "steady" else report.get("reason") or report["suspects"]
    print(f"{program.stem:24} {report['verdict']:8} {reason}", flush=True)
    return alarm


def _overhead(program: Path) -> float:
    ratios = []
    for _ in range(3):
        began_s = perf_counter()
        subprocess.run([sys.executable, str(program)], capture_output=True, check=True)
        bare_s = perf_counter() - began_s
        began_s = perf_counter()
        watched(program, "--to-end")
        ratios.append((perf_counter() - began_s) / bare_s)
    return median(ratios)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--overhead"], "--overhead" in sys.argv)
