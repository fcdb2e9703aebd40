"""What the run-time half promises besides its verdicts, measured.

    python tests/benchmarks/runtime_measures.py smallest      # leaks found in 1,000 steps
    python tests/benchmarks/runtime_measures.py timings [NAMES]  # window, report, delay
    python tests/benchmarks/runtime_measures.py fingerprints  # of one leak across ten runs
    python tests/benchmarks/runtime_measures.py soak          # own memory over 200,000 steps
    python tests/benchmarks/runtime_measures.py overhead      # whole runs on a step of 20 ms
    python tests/benchmarks/runtime_measures.py alarms [ROUNDS [SECONDS]]  # clean programs

Only ratios, counts and the process's own clocks are told: the machine may be shared.
"""

from __future__ import annotations

import itertools
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from runtime_scoreboard import PROGRAMS, watched

SHORT_CLEAN = (
    *("arithmetic", "autocast_and_checkpoint", "best_state", "classifier", "context_cycle"),
    *("custom_function_and_hooks", "double_backward", "exponential_average", "float_log"),
    *("full_window", "gan", "gradient_accumulation", "inference", "keeps_the_last_loss"),
    *("log_of_floats", "manual_sgd_epochs", "truncated_bptt", "varying_shapes"),
    *("window_of_losses", "lists_of_an_epoch"),
)

TRAINING = """\
import ctypes, torch
from torch import nn
torch.manual_seed(0)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
class Thing:
    pass
def train():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept, chain = [], torch.ones((), requires_grad=True) * 1
    for step in range(1010):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {leak}  # leak
train()
"""
SMALLEST = {  # what leaks -> the line that leaks it, and the options that do not tolerate it
    "one Node in ten steps": ("if step % 10 == 0: chain = chain + 1", ()),
    "one tensor in ten steps": ("if step % 10 == 0: kept.append(torch.zeros(1))", ()),
    "one object in ten steps": ("if step % 10 == 0: kept.append(Thing())", ("--tolerance", "1 B")),
    "64 bytes of heap a step": ("libc.malloc(64)", ()),
}
SOAKED = """\
import itertools, psutil
def in_use():
    return sum(psutil.heap_info()[:2]) // 1024, psutil.Process().memory_info().rss // 1024
readings, value = [], 0
for step in range(200_000):
    value = (value * 31 + step) % 1009
    if step in (50_000, 199_999):
        readings.append(in_use())
(heap, rss), (later_heap, later_rss) = readings
print(f"heap {later_heap - heap:+} KiB, RSS {later_rss - rss:+} KiB")
"""
TWENTY_MS = """\
import time, torch
from torch import nn
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
due = time.perf_counter()
for step in range(STEPS):
    began = time.perf_counter()
    loss = model(torch.randn(32, 64)).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    time.sleep(max(0.0, 0.02 - (time.perf_counter() - began)))
"""
# run in the watched process, before leakcheck: how long its parts take
TIMED = """\
import atexit, sys, time
from leakcheck.cli import session
from leakcheck.runtime.attribution.window import Window
spent = {"window": 0.0, "report": 0.0}
def timed(kind, owner, name):
    run = getattr(owner, name)
    def measure(*args, **named):
        began = time.thread_time()
        try:
            return run(*args, **named)
        finally:
            spent[kind] += time.thread_time() - began
    setattr(owner, name, measure)
timed("window", Window, "open")
timed("window", Window, "step")
timed("window", Window, "close")
timed("report", session.Session, "_finish")
atexit.register(lambda: print("SPENT", spent["window"], spent["report"]))
from leakcheck.cli import main
sys.argv = ["leakcheck", "run", "--exit-zero", sys.argv[1]]
main()
"""


def smallest() -> None:
    """Print which of the smallest leaks worth finding are found in 1,000 steps."""
    for name, (leak, options) in SMALLEST.items():
        source = TRAINING.format(leak=leak)
        report = _watched_source(source, *options)
        expected = source[: source.index("# leak")].count("\n") + 1
        print(f"{name:26} {report['verdict']:8} {_told(report)}, leaks in {expected}", flush=True)


def timings(*names: str) -> None:
    """Print, for leaking programs, steps after warm-up and seconds of processor time."""
    programs = sorted((PROGRAMS / "leaking").glob("*.py"))
    for program in programs:
        if names and program.stem not in names:
            continue
        timed = [sys.executable, "-c", TIMED, str(program)]
        done = subprocess.run(timed, capture_output=True, text=True)
        spent = re.search(r"SPENT ([\d.]+) ([\d.]+)", done.stdout)
        window, written = map(float, spent.groups()) if spent else (0.0, 0.0)
        seen = re.search(r"steps \(the last ([\d,]+) judged", done.stderr + done.stdout)
        steps = int(seen[1].replace(",", "")) if seen else 0
        told = f"window {window:.2f} s  report {written:.2f} s"
        print(f"{program.stem:24} {steps:5} steps  {told}", flush=True)


def fingerprints(runs: int = 10) -> None:
    """Print the different fingerprints that one leak gets over several runs."""
    for name in ("total_loss", "outputs", "arrays"):
        reports = [watched(PROGRAMS / "leaking" / f"{name}.py") for _ in range(runs)]
        found = {report["suspects"][0]["fingerprint"] for report in reports if report["suspects"]}
        print(f"{name:24} {len(found)} in {runs} runs: {' '.join(sorted(found))}", flush=True)


def soak() -> None:
    """Print how much a loop of 200,000 steps holds more at its end than after 50,000."""
    print(_watched_source(SOAKED, "--to-end")["stdout"].strip())


def overhead(steps: int = 1500, pairs: int = 3) -> None:
    """Print what whole runs cost more with leakcheck, as a share of steps of 20 ms.

    Processor time is compared, which other programs on the machine disturb least.
    """
    shares, source = [], TWENTY_MS.replace("STEPS", str(steps))
    for _ in range(pairs):
        began_s = _children_s()
        subprocess.run([sys.executable, "-c", source], check=True)
        bare_s = _children_s() - began_s
        began_s = _children_s()
        report = _watched_source(source, "--to-end")
        shares.append((_children_s() - began_s - bare_s) / (0.02 * steps))
        inside = report["overhead"]
        print(f"{shares[-1]:+.2%}; inside {inside['per_step_us']:.0f} us a step", flush=True)
    print(f"median {median(shares):+.2%} over {steps} steps of 20 ms, start and report included")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def alarms(rounds: int = 10, seconds: float = 1500) -> None:
    """Print how many of the clean programs raise an alarm, each with another seed a round."""
    began_s, runs, raised = monotonic(), 0, []
    for seed, name in itertools.product(range(1, rounds + 1), SHORT_CLEAN):
        if monotonic() - began_s > seconds:
            break
        source = (PROGRAMS / "clean" / f"{name}.py").read_text()
        report = _watched_source(re.sub(r"manual_seed\(0\)", f"manual_seed({seed})", source))
        runs += 1
        if report["verdict"] == "growing":
            raised.append(f"{name} with seed {seed}: {_told(report)}")
            print(raised[-1], flush=True)
    print(f"{len(raised)} false alarms in {runs} runs of {len(SHORT_CLEAN)} clean programs")


def _watched_source(source: str, *options: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(source)
        return watched(program, *options, timeout_s=600)


def _told(report: dict[str, Any]) -> str:
    if not report["suspects"]:
        return report.get("reason") or ""
    first = report["suspects"][0]
    line = first["locations"][0]["line"] if first["locations"] else "-"
    return f"{first['kind']}, line {line}, {first['holder']}, {report['run']['steps']} steps"


MEASURES = {each.__name__: each for each in (smallest, fingerprints, soak, overhead)}

if __name__ == "__main__":
    if sys.argv[1] == "alarms":
        alarms(*map(int, sys.argv[2:]))
    elif sys.argv[1] == "timings":
        timings(*sys.argv[2:])
    else:
        MEASURES[sys.argv[1]]()
