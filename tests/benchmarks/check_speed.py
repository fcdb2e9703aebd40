"""How fast and how large `leakcheck check` is, beside other linters on the same files.

    python tests/benchmarks/check_speed.py FOLDER [--peers VENV/bin] [--large FOLDER]

Each tool gets one process, no cache and the same tree, one after another in one run; what counts is
the ratio, in processor seconds, since a shared machine makes wall time a matter of luck.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CACHED_FILES = 1_000
TORCH_PREFLIGHT_LEAK_RULES = "TG001,TG002"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took: processor time, wall time, and its largest resident size."""

    cpu_s: float
    elapsed_s: float
    peak_rss_bytes: int


def main() -> None:
    """Print the table of ratios, then the cached tree, the help and the memory."""
    options = _options()
    tree = options.tree
    lines = sum(path.read_bytes().count(b"\n") for path in tree.rglob("*.py"))
    print(f"{lines:,} lines in {tree.name}, one process each, no cache\n")
    own = [*_leakcheck(), "check", "--no-cache", "--isolated", "--jobs", "1", str(tree)]
    costs = {"leakcheck": cost(own)}
    costs |= {name: cost(command) for name, command in _peers(options, tree).items()}
    base = lines / costs["leakcheck"].cpu_s
    print(f"{'tool':<18}{'lines/s':>10}{'leakcheck is':>16}{'peak MB':>10}")
    for name, each in costs.items():
        rate = lines / each.cpu_s
        print(f"{name:<18}{rate:>10,.0f}{base / rate:>15.2f}x{each.peak_rss_bytes / 1e6:>10.0f}")
    print(f"\n--help: {cost([*_leakcheck(), '--help']).elapsed_s:.2f} s")
    kept = _from_cache()
    print(f"{CACHED_FILES:,} unchanged files from the cache: {kept.cpu_s:.2f} s, "
          f"{kept.elapsed_s:.2f} s by the clock")  # fmt: skip
    if options.large:
        large = cost([*own[:-1], str(options.large)])
        print(
            f"{options.large.name}: {large.cpu_s:.0f} s, peak {large.peak_rss_bytes / 1e6:.0f} MB"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="an unpacked source package")
    parser.add_argument("--peers", type=Path, help="the bin folder with torchfix, ruff ...")
    parser.add_argument("--select", default=TORCH_PREFLIGHT_LEAK_RULES)
    parser.add_argument("--large", type=Path, help="a large tree to measure memory on")
    return parser.parse_args()


def _leakcheck() -> list[str]:
    return [sys.executable, "-m", "leakcheck"]


def _peers(options: argparse.Namespace, tree: Path) -> dict[str, list[str]]:
    if options.peers is None:
        return {}
    programs = {
        "torchfix": ["torchfix", "-j", "1"],
        "torch-preflight": ["torch-preflight", "check", "-j", "1", "--select", options.select],
        "ruff": ["ruff", "check", "--no-cache", "--isolated", "--quiet"],
    }
    found = {name: [str(options.peers / p), *rest] for name, (p, *rest) in programs.items()}
    return {name: [*command, str(tree)] for name, command in found.items()}


def cost(command: list[str], folder: str | None = None) -> Cost:
    """Run a command in a process of its own, its output thrown away."""
    start = os.times().elapsed
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{command[0]} exited with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(used.ru_utime + used.ru_stime, os.times().elapsed - start, used.ru_maxrss * unit)


def _from_cache() -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(CACHED_FILES):
            text = f"import torch\n\ndef f(loader):\n    return [b + {number} for b in loader]\n"
            Path(folder, f"module_{number}.py").write_text(text, encoding="utf-8")
        command = [*_leakcheck(), "check", "."]
        cost(command, folder)
        return cost(command, folder)


if __name__ == "__main__":
    main()
