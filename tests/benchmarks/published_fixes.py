"""What `leakcheck fix` proves on code that was published with a leak, beside its maintainers' fix.

    python tests/benchmarks/published_fixes.py [--mirrors MIRRORS] [NAME ...]

Each program of `published` trains with a package as it was released, or with a repository as it was
at a commit. Its source is put beside the program as the program's own. MIRRORS holds a git
directory for each repository at owner+name, as for the corpus; without it only packages are run.
What they need beside torch has to be installed: numpy, scipy, tqdm, pillow, tensorboard and
torchmetrics, and for gpytorch what its head names.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import tomllib

PROGRAMS = sorted((Path(__file__).parent / "published").glob("*.py"))


def head_of(program: Path) -> dict[str, Any]:
    """Return what the comments at a program's head say, which are TOML."""
    lines = program.read_text().partition("\n# ")[2].partition("\n\n")[0]
    return tomllib.loads(lines.replace("\n# ", "\n"))


def put_together(program: Path, head: dict[str, Any], mirrors: Path | None, folder: Path) -> bool:
    """Write a program and the source that it trains with; False where that cannot be had."""
    renamed = head.get("renamed", {})
    folder.joinpath(renamed.get(program.name, program.name)).write_text(program.read_text())
    if "package" in head:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        subprocess.run([*install, str(folder), head["package"]], check=True)
        for described in folder.glob("*.dist-info"):  # by which it is known as installed
            shutil.rmtree(described)
        return True
    git = next(_git_directories(mirrors, head["repository"]), None)
    if git is None:
        return False
    command = ["git", "--git-dir", str(git), "archive", head["commit"], *head["paths"]]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    for old, new in renamed.items():
        if folder.joinpath(old).exists():
            folder.joinpath(old).rename(folder / new)
    if "replaced" in head:
        runs = folder / head["runs"]
        runs.write_text(runs.read_text().replace(*head["replaced"]))
    return True


def _git_directories(mirrors: Path | None, repository: str) -> Iterator[Path]:
    if mirrors is not None:
        found = mirrors / repository.replace("/", "+")
        yield from (
            each.parent for each in (found / "HEAD", *found.glob("*/HEAD")) if each.is_file()
        )


def cured(script: str, options: list[str], folder: Path) -> dict[str, Any]:
    """Run `fix` on a script in its folder; what it answers as JSON, with the seconds it took."""
    command = [sys.executable, "-m", "leakcheck", "fix", "--json", "fix.json", *options, script]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    began_s = monotonic()
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(folder.joinpath("fix.json").read_text())
    return answer | {"seconds": monotonic() - began_s, "said": ended.stdout.partition("\n")[0]}


def main() -> None:
    """Print what is proved of each program, the edit, and how it was mended."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mirrors", type=Path)
    asked = parser.parse_args()
    for program in PROGRAMS:
        head = head_of(program)
        if asked.names and program.stem not in asked.names:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if not put_together(program, head, asked.mirrors, folder):
                print(f"{program.stem}: no mirror of {head['repository']}", flush=True)
                continue
            answer = cured(head.get("runs", program.name), head.get("options", []), folder)
        print(f"{program.stem} ({answer['seconds']:.0f} s): {answer['said']}")
        chosen = answer["attempts"][answer["chosen"]] if answer["chosen"] is not None else {}
        lines = chosen.get("diff", "").splitlines()
        print(*(f"    {line}" for line in lines if line[:1] in "+-"), sep="\n")
        print(f"    the maintainers' fix: {head['fixed']}", flush=True)


if __name__ == "__main__":
    main()
