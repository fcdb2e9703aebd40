"""Record what a CUDA device does, as data that the tests replay without one.

    python tests/benchmarks/gpu_capture.py            # everything, into tests/data/gpu
    python tests/benchmarks/gpu_capture.py --only seeds workspaces

Each section runs in a process of its own, because allocator settings are read once; a section that
fails is reported and the others go on. Files hold device, torch and CUDA version, and no frame or
path. About three minutes on one card.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "data" / "gpu"
LIMIT_S = 150

# section -> what it needs in the environment
SECTIONS: dict[str, dict[str, str]] = {
    "seeds": {},
    "seeds-without-workspaces": {"CUBLAS_WORKSPACE_CONFIG": ":0:0"},
    "workspaces": {},
    "context": {},
    "peaks": {},
    "ledgers": {},
    "scratch": {},
    "attention": {},
    "attention-by-kernel": {},
    "kernels": {},
    "autocast": {},
    "published": {},
    "overhead": {},
    "watching": {},
    "trace-native": {},
    "trace-expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "trace-max-split": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:32"},
    "trace-roundup": {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4"},
    "trace-gc": {"PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.6"},
    "trace-streams": {},
    "trace-graph": {},
    "trace-oom": {},
}


def main() -> int:
    """Run the sections asked for; returns how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--section", choices=SECTIONS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.section:
        return _capture(options.section, options.out)
    failed = [name for name in options.only if not _run(name, options.out)]
    print(f"{len(options.only) - len(failed)} captured, failed: {', '.join(failed) or 'none'}")
    return len(failed)


def _run(section: str, out: Path) -> bool:
    command = [sys.executable, __file__, "--section", section, "--out", str(out)]
    environment = os.environ | SECTIONS[section]
    try:
        done = subprocess.run(command, env=environment, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"{section}: took more than {LIMIT_S} s")
        return False
    print(f"{section}: {'ok' if done.returncode == 0 else 'failed'}", flush=True)
    return done.returncode == 0


def _capture(section: str, out: Path) -> int:
    sys.path.insert(0, str(HERE))
    import gpu_sections
    import gpu_traces
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 1
    if section.startswith("trace-"):
        gpu_traces.capture_trace(section, out)
        return 0
    told = gpu_sections.CAPTURES[section]()
    whole = {"section": section, **gpu_sections.origin(), "captured": told}
    (out / f"{section}.json").write_text(json.dumps(whole, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
