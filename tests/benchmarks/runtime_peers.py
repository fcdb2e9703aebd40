"""leakcheck beside the tools people look for leaks with today, on the same programs.

    python -m venv peers; peers/bin/pip install torch memray pytest-memray objgraph scalene ...
    python tests/benchmarks/runtime_peers.py peers/bin/python [--tools A,B] [PROGRAM ...]

A cell says whether the tool finds a leak (of memray, which gives no verdict: whether it lists more
than 100 KB that the program kept), whether the line it names first is the leaking one, and how
long the whole run took as a multiple of the run alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from runtime_scoreboard import PROGRAMS, expected_of, right_holder, right_line, watched

DRIVER = Path(__file__).parent / "peer_driver.py"
LONGEST_S = 240
LEAKING = ("in_place_sum", "total_loss", "losses", "meter", "hidden_state", "create_graph")
LEAKING += ("hook", "outputs", "arrays")
CLEAN = ("exponential_average", "full_window", "context_cycle")
Says = tuple[bool, list[int]]

MEMRAY = """\
import json, sys
from pathlib import Path
from memray import FileReader
program = str(Path(sys.argv[2]).resolve())
worst = []
for record in FileReader(sys.argv[1]).get_leaked_allocation_records(merge_threads=True):
    frames = [each for each in record.stack_trace() if each[1] == program]
    lines = [line for function, _, line in frames if function != "<module>"]  # there it imports
    if lines:
        worst.append((record.size, lines[0]))
worst.sort(reverse=True)
found = sum(size for size, _ in worst) > 100_000
print("SAYS", json.dumps({"found": found, "lines": [line for _, line in worst[:3]]}))
"""
LIMITED = """\
import runpy, pytest, torch, torch._dynamo  # or what they allocate counts
@pytest.mark.limit_leaks("100 KB")
def test_program():
    runpy.run_path({program!r}, run_name="__main__")
"""


def main(python: str, tools: list[str], names: list[str]) -> None:
    """Print a row a program and a sum a tool."""
    programs = [PROGRAMS / "leaking" / f"{each}.py" for each in LEAKING]
    programs += [PROGRAMS / "clean" / f"{each}.py" for each in CLEAN]
    chosen = [each for each in programs if each.stem in names or not names]
    for program in chosen:
        began_s = perf_counter()
        _run([python, str(program)])
        alone_s = perf_counter() - began_s
        cells = [f"{tool} {_cell(tool, python, program, alone_s)}" for tool in tools]
        print(f"{program.parent.name} {program.stem}: {'; '.join(cells)}", flush=True)


def _cell(tool: str, python: str, program: Path, alone_s: float) -> str:
    marked = expected_of(program).lines
    began_s = perf_counter()
    try:
        found, lines = TOOLS[tool](tool, python, program)
    except subprocess.TimeoutExpired:
        return f"over {LONGEST_S} s"
    except RuntimeError as error:
        return f"failed ({error})"
    ratio = (perf_counter() - began_s) / alone_s
    line = "line" if lines and lines[0] in marked else "no line"
    told = f"found, {line}" if found else "nothing"
    return f"{told}, {ratio:.1f}x"


def _by_leakcheck(tool: str, python: str, program: Path) -> Says:
    report, expected = watched(program, "--to-end"), expected_of(program)
    named = right_line(report, expected) or right_holder(report, expected)
    return report["verdict"] == "growing", list(expected.lines[:1]) if named else []


def _by_driver(tool: str, python: str, program: Path) -> Says:
    allocator = "malloc" if tool == "psleak" else "default"
    return _said(_run([python, str(DRIVER), tool, str(program)], PYTHONMALLOC=allocator))


def _by_memray(tool: str, python: str, program: Path) -> Says:
    with tempfile.TemporaryDirectory() as folder:
        recorded = str(Path(folder) / "recorded.bin")
        _run([python, "-m", "memray", "run", "-q", "-o", recorded, str(program)])
        return _said(_run([python, "-c", MEMRAY, recorded, str(program)]))


def _by_pytest_memray(tool: str, python: str, program: Path) -> Says:
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder) / "test_program.py"
        test.write_text(LIMITED.format(program=str(program)))
        done = _run([python, "-m", "pytest", "-q", "--memray", str(test)])
        return done.returncode == 1, []


def _by_scalene(tool: str, python: str, program: Path) -> Says:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "profile.json"
        _run([python, "-m", "scalene", "run", "-o", str(written), str(program)])
        if not written.is_file():
            raise RuntimeError("no profile")
        files = json.loads(written.read_text())["files"]
    leaks = files.get(str(program), {}).get("leaks", {})  # line -> likelihood and velocity
    lines = sorted(leaks, key=lambda line: -leaks[line].get("velocity_mb_s", 0))
    return bool(leaks), [int(line) for line in lines]


def _run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def _said(done: subprocess.CompletedProcess[str]) -> Says:
    said = [line for line in done.stdout.splitlines() if line.startswith("SAYS ")]
    if not said:
        raise RuntimeError((done.stderr.strip() or "no answer").splitlines()[-1][:60])
    answer = json.loads(said[-1].removeprefix("SAYS "))
    return answer["found"], answer["lines"]


TOOLS: dict[str, Callable[[str, str, Path], Says]] = {
    "leakcheck": _by_leakcheck,
    "memray": _by_memray,
    "pytest-memray": _by_pytest_memray,
    "tracemalloc": _by_driver,
    "objgraph": _by_driver,
    "memalot": _by_driver,
    "psleak": _by_driver,
    "scalene": _by_scalene,
}

if __name__ == "__main__":
    python, *rest = sys.argv[1:]
    tools = list(TOOLS)
    if rest[:1] == ["--tools"]:
        tools, rest = rest[1].split(","), rest[2:]
    main(python, tools, rest)
