"""Whether watching changes a program: what it prints and how it ends, alone and under leakcheck.

`python tests/benchmarks/harm/run.py FOLDER_OR_PROGRAM...` prints a table of all the programs and
exits 1 if any run under leakcheck differs from the runs alone. Those runs also show what varies by
itself: a line that does is compared without its numbers, and not at all if that does not help.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GIVEN = b"given\nalso given\n"
BUSY_LOOPS = 3
WATCHED = ("-m", "leakcheck", "run", "--to-end", "--exit-zero")
ADDRESS = re.compile(r"0x[0-9a-f]{8,}")
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
TROUBLE = re.compile(r"Traceback|Exception ignored|Fatal Python error|Segmentation fault")
# programs that cannot come out alike, each with the reason
DIFFERENT_BY_NATURE = {
    "freed_at_once": "a thread sees that what it drops during a look lives until its end",
    "weak_caches": "a thread sees that what it drops during a look lives until its end",
    "p_gc_debug": "counts the collector's callbacks, of which one is leakcheck's",
    "p_gc_state": "counts what was made since the last collection",
    "p_introspect": "shows the names that count turns of loops, and leakcheck's callback",
    "p_sigdfl": "shows the handler by which a run that SIGTERM ends is reported",
    "p_threads": "three threads step one optimizer: alone, too, it crashes in three of eight runs",
    "q_mt_settrace": "counts the events of a tracer, which sees the calls that count loops' turns",
    "q_trace_slow": "prints the time of a loop whose turns are counted, at 26 ns each",
    "q_gcoff": "its peak is lower: cycles are collected before readings",
}
LEFT_OUT = {
    "q_mem": "fills the memory without end; for --host-limit",
    "q_mem2": "fills the memory without end; for --host-limit",
}
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program wrote and how it ended; no status if it had to be killed."""

    stdout: Lines
    stderr: Lines
    status: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one program."""

    name: str
    alone: int | None
    runs: int
    differences: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why the program may come out otherwise, "" if it may not."""
        return DIFFERENT_BY_NATURE.get(self.name, "")


def run_once(python: str, arguments: Sequence[str], program: Path, limit_s: float) -> Ended:
    """Run a program in an empty folder and a process group of its own, which then is ended."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outputs = [Path(folder, name) for name in (".stdout", ".stderr")]
        with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
            process = subprocess.Popen(
                [python, *arguments, str(program)],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            status = _wait(process, limit_s)
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in outputs]
        stdout, stderr = (tuple(ADDRESS.sub("0x", text).splitlines()) for text in texts)
    return Ended(stdout, stderr, status)


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    try:
        process.communicate(GIVEN, timeout=limit_s)
        return process.returncode
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # children that outlive it, too
        process.wait()


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep the processor busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Usual:
    """What a stream is like in runs of the program alone, as far as these agree."""

    def __init__(self, runs: Sequence[Lines]) -> None:
        self.length = len(runs[0])
        self.is_known = len({len(run) for run in runs}) == 1
        self._expected = [_agreed(versions) for versions in zip(*runs, strict=False)]

    def first_difference(self, lines: Lines) -> str:
        """Tell the first line that is not as usual, "" if there is none."""
        if not self.is_known:
            return ""
        for number, (expected, line) in enumerate(zip_longest(self._expected, lines), 1):
            if not _is_like(expected, line):
                return f"line {number}: {_quoted(expected and expected[0])} -> {_quoted(line)}"
        return ""


def _agreed(versions: tuple[str, ...]) -> tuple[str, bool, bool]:
    """Return a line, and whether it is always the same, with and without its numbers."""
    exact, loose = set(versions), {NUMBER.sub("#", line) for line in versions}
    return versions[0], len(exact) == 1, len(loose) == 1


def _is_like(expected: tuple[str, bool, bool] | None, line: str | None) -> bool:
    if expected is None or line is None:
        return False
    usual, exact, loose = expected
    if exact:
        return line == usual
    return not loose or NUMBER.sub("#", line) == NUMBER.sub("#", usual)


def _quoted(text: str | None) -> str:
    shown = "nothing" if text is None else f"`{text[:160]}`"
    return shown.replace("|", "\\|")


def without_report(lines: Lines, usual_length: int) -> tuple[Lines, Lines]:
    """Split leakcheck's lines off from the program's, of which as many are expected as alone."""
    begin = next((n for n, line in enumerate(lines) if line.startswith("leakcheck: ")), None)
    if begin is None:
        return lines, ()
    end = len(lines) - max(0, usual_length - begin)
    return lines[:begin] + lines[end:], lines[begin:end]


class Comparison:
    """Compares runs under leakcheck with runs of the same program alone."""

    def __init__(self, alone: Sequence[Ended]) -> None:
        self._statuses = {each.status for each in alone}
        self._stdout = Usual([each.stdout for each in alone])
        self._stderr = Usual([each.stderr for each in alone])

    def difference(self, watched: Ended) -> str:
        """Tell what differs first, "" if nothing does."""
        own, ours = without_report(watched.stderr, self._stderr.length)
        trouble = next((line for line in ours if TROUBLE.search(line)), "")
        told = {
            "stdout": self._stdout.first_difference(watched.stdout),
            "stderr": self._stderr.first_difference(own) or (trouble and _quoted(trouble)),
        }
        if watched.status is None and None not in self._statuses:
            told = {"hangs": "killed"} | told
        elif watched.status not in self._statuses:
            told["status"] = f"{self._statuses} -> {watched.status}"
        return "; ".join(f"{key} {text}" for key, text in told.items() if text)


def compare(program: Path, options: argparse.Namespace) -> Row:
    """Run a program alone and watched, and tell what differed."""
    limit_s = options.limit
    alone = [run_once(options.python, (), program, limit_s) for _ in range(options.alone)]
    comparison = Comparison(alone)
    differences = []
    for number in range(options.runs):
        busy = number < min(options.busy, options.runs)
        with busy_loops(BUSY_LOOPS if busy else 0):
            watched = run_once(options.python, WATCHED, program, limit_s)
        differences.append(comparison.difference(watched))
    row = Row(program.stem, alone[0].status, options.runs, tuple(filter(None, differences)))
    told = f"{row.name}: {len(row.differences)} of {row.runs} differ"
    print(told, *row.differences[:1], sep="\n  ", file=sys.stderr, flush=True)
    return row


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows in Markdown."""
    yield "| program | status alone | runs | same | first difference |"
    yield "|---|---|---|---|---|"
    for row in rows:
        most = Counter(row.differences).most_common(1)
        told = most[0][0] if most else ""
        told += f" (right: {row.reason})" if told and row.reason else ""
        same = row.runs - len(row.differences)
        yield f"| `{row.name}` | {row.alone} | {row.runs} | {same} | {told} |"


def programs_in(paths: Sequence[Path]) -> list[Path]:
    """Return the programs given and those of the folders given."""
    found = [p for path in paths for p in (sorted(path.glob("*.py")) if path.is_dir() else [path])]
    return [program.resolve() for program in found if program.stem not in LEFT_OUT]


def main() -> int:
    """Compare the programs named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="FOLDER_OR_PROGRAM")
    parser.add_argument("--runs", type=int, default=10, help="under leakcheck, of each program")
    parser.add_argument("--busy", type=int, default=2, help="of these, beside three busy loops")
    parser.add_argument("--alone", type=int, default=3, help="runs without leakcheck")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2, help="programs at the same time")
    parser.add_argument("--limit", type=float, default=300, help="seconds a run may take")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda each: compare(each, options), programs_in(options.paths)))
    print("\n".join(table(rows)))
    return int(any(row.differences and not row.reason for row in rows))


if __name__ == "__main__":
    sys.exit(main())
