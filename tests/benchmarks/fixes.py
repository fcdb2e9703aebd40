"""Which leaks does `leakcheck fix` cure, and at what cost? One row a program.

    python tests/benchmarks/fixes.py [--size N] [NAME ...]

Runs it on the leaking programs of tests/runtime/programs and of the rules, all or those whose name
has a NAME in it. Columns: what came of it, the edit, the edits tried, whether results differ,
seconds of processor time, and how many times those of the program alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    *sorted((ROOT / "tests" / "runtime" / "programs" / "leaking").glob("*.py")),
    *sorted((ROOT / "rules").glob("*/leaky.py")),
]
LONGEST_S = 900


def cured(program: Path, size: int | None) -> dict[str, Any]:
    """Fix one program in a folder of its own; what `--json` says, with the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(program.parent, folder, dirs_exist_ok=True)
        options = ["--json", "fix.json", *(["--size", str(size)] if size else [])]
        alone_s, _ = _run([program.name], folder)
        seconds, ended = _run(["-m", "leakcheck", "fix", *options, program.name], folder)
        file = Path(folder, "fix.json")
        answer: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        times = seconds / alone_s
        return {**answer, "seconds": seconds, "times": times, "stderr": ended.stderr}


def _run(arguments: list[str], folder: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Run Python to its end; the processor time that it took with all its processes."""
    began_s = _children_s()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S
    )
    return _children_s() - began_s, ended


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name: str, answer: dict[str, Any]) -> tuple[str, ...]:
    """Say in a row what came of one program."""
    attempts = answer.get("attempts", [])
    number = answer.get("chosen")
    chosen = attempts[number] if number is not None else None
    outcomes = sorted({each["outcome"] for each in attempts})
    told = chosen["outcome"] if chosen else ", ".join(outcomes) or answer["stderr"].strip()[-60:]
    if not chosen and answer.get("choices"):
        told = f"{told}; choice offered".removeprefix("; ")
    edit = chosen["candidate"] if chosen else ""
    differ = ", ".join(each["what"] for each in chosen["differences"]) if chosen else ""
    cost = f"{answer['seconds']:.1f}", f"{answer['times']:.1f}"
    return name, told, edit, str(len(attempts)), differ, *cost


def name_of(program: Path) -> str:
    """Name a program: that of a rule by the rule."""
    return program.parent.name if program.stem == "leaky" else program.stem


def main() -> None:
    """Print the table, and the share that is proved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--size", type=int)
    asked = parser.parse_args()
    wanted = [p for p in PROGRAMS if not asked.names or any(n in name_of(p) for n in asked.names)]
    proved, times = 0, []
    head = f"{'program':<28}{'outcome':<34}{'edit':<10}{'tried':<7}{'differs':<10}seconds  times"
    print(head)
    for program in wanted:
        answer = cured(program, asked.size)
        name, told, edit, tried, differ, *cost = row(name_of(program), answer)
        proved += told == "proved"
        times.append(answer["times"])
        line = f"{name:<28}{told:<34}{edit:<10}{tried:<7}{differ:<10}{cost[0]:<9}{cost[1]}"
        print(line, flush=True)
    print(f"proved: {proved} of {len(wanted)}; processor time: {median(times):.1f} times the run's")


if __name__ == "__main__":
    main()
