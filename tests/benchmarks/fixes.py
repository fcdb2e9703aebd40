"""Which leaks does `leakcheck fix` cure, and at what cost? One row a program.

    python tests/benchmarks/fixes.py [--size N] [NAME ...]

Runs it on the programs of tests/runtime/programs/leaking, all or those whose name has a NAME in
it. Columns: what came of it, the edit, the edits tried, whether results differ, and seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parents[1] / "runtime" / "programs" / "leaking"


def cured(program: Path, size: int | None) -> dict[str, Any]:
    """Fix one program in a folder of its own; what `--json` says, with the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(program, folder)
        options = ["--json", "fix.json", *(["--size", str(size)] if size else [])]
        command = [sys.executable, "-m", "leakcheck", "fix", *options, program.name]
        began = time.perf_counter()
        ended = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - began
        file = Path(folder, "fix.json")
        answer: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return {**answer, "seconds": seconds, "status": ended.returncode, "stderr": ended.stderr}


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
    return name, told, edit, str(len(attempts)), differ, f"{answer['seconds']:.0f}"


def main() -> None:
    """Print the table, and the share that is proved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--size", type=int)
    asked = parser.parse_args()
    files = sorted(PROGRAMS.glob("*.py"))
    chosen = [f for f in files if not asked.names or any(each in f.stem for each in asked.names)]
    proved = 0
    print(f"{'program':<28}{'outcome':<34}{'edit':<10}{'tried':<7}{'differs':<10}seconds")
    for file in chosen:
        answer = cured(file, asked.size)
        name, told, edit, tried, differ, seconds = row(file.stem, answer)
        proved += told == "proved"
        print(f"{name:<28}{told:<34}{edit:<10}{tried:<7}{differ:<10}{seconds}", flush=True)
    print(f"proved: {proved} of {len(chosen)}")


if __name__ == "__main__":
    main()
