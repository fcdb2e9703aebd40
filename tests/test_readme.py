"""README's command lines do what they say: each is run as printed, or listed with the reason.

A line runs in a folder of its own, with programs in the place of the reader's. Only what installs
is a stand-in: `pipx run torch-leakcheck` is this checkout.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click
import pytest

from leakcheck.cli import COMMANDS, leakcheck
from tests.forks import Forks

pytest.importorskip("torch")

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ("leakcheck", "git", "torchrun", "pip", "pipx", "python", "pytest", "eval")

# one sample is 16 GiB here, so that few batch sizes are tried
TRAIN = """\
import argparse

import torch
from torch import nn


def build(device, batch_size, width=1 << 32, lr=1e-3):
    scale = nn.Parameter(torch.ones(1, device=device))
    optimizer = torch.optim.SGD([scale], lr=lr)
    x = torch.zeros(batch_size, width, device=device)

    def step():
        optimizer.zero_grad()
        (x * scale).mean().backward()
        optimizer.step()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    step = build(device, 32, 64, parser.parse_args().lr)
    for _ in range(1500):
        step()


if __name__ == "__main__":
    main()
"""
LEAKY = (ROOT / "examples" / "leaky_train.py").read_text(encoding="utf-8")
COLLECTING = """\
def train(model, loader, optimizer):
    losses = []
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses
"""
TEST = """\
import torch
from torch import nn


def test_training():
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
"""
# command line -> its exit status
RUN = {
    ".venv/bin/leakcheck run --exit-zero examples/leaky_train.py": 0,
    "leakcheck check src/": 1,
    "leakcheck check --no-cache --isolated .": 1,
    "leakcheck check train.py src/": 1,
    "leakcheck check --fix src/": 0,
    "leakcheck explain": 0,
    "leakcheck explain undetached-accumulator": 0,
    **{
        f"leakcheck explain {topic}": 0
        for topic in ("verdicts", "kinds", "exit-statuses", "json", "harm", "rules", "devices")
    },
    "leakcheck rules": 0,
    "leakcheck baseline": 0,
    "pipx run torch-leakcheck check --output-format sarif --output-file leakcheck.sarif"
    " --exit-zero .": 0,
    "leakcheck run train.py --lr 1e-3": 0,
    "leakcheck run": 2,
    "leakcheck run -m package.train": 0,
    "git bisect run leakcheck run --bisect train.py": 0,
    "torchrun --nproc-per-node 2 -m leakcheck run train.py": 0,
    "leakcheck report DIR --html report.html": 0,
    "leakcheck fix train.py": 0,
    "leakcheck compare --commits HEAD~1..HEAD train.py": 0,
    "leakcheck isolate": 2,
    "leakcheck isolate train.py": 0,
    "pytest --leakcheck": 0,
    "pytest --leakcheck-fix": 0,
    "leakcheck estimate train.py --device a100": 0,
    "leakcheck estimate train.py --device a100 -- --lr 1e-3": 0,
    "leakcheck estimate train.py:build --largest-batch": 0,
    "leakcheck estimate train.py --measured snapshot.pickle --html page.html": 0,
    "leakcheck estimate --zero2 --params 2851e6 --gpus-per-node 8": 0,
    "leakcheck replay snapshot.pickle": 0,
    'eval "$(_LEAKCHECK_COMPLETE=bash_source leakcheck)"': 0,
    "leakcheck lsp": 0,
}
NOT_RUN = {
    "python3 -m venv .venv": "makes the environment that the tests run in",
    '.venv/bin/pip install -e ".[torch]" torch==2.13.0': "installs a part of it",
    '.venv/bin/pip install -e ".[dev]"': "installs what the tests run with",
    "pip install -e .": "installs a part of it",
    ".venv/bin/pytest -n 2": "is this suite",
    'pip install "torch-leakcheck[torch,pytest]"': "installs from an index",
    "python tests/benchmarks/predictor_accuracy.py": "takes minutes and needs transformers",
}
# what must be there before
PREPARE = {
    "git bisect run leakcheck run --bisect train.py": """
        git init -q && git add train.py && git commit -qm steady && git tag steady
        echo >> train.py && git commit -qam "still steady"
        cp leaky_train.py train.py && git commit -qam leaky
        git bisect start HEAD steady
    """,
    "leakcheck compare --commits HEAD~1..HEAD train.py": """
        git init -q && cp train.py fixed.py && cp leaky_train.py train.py
        git add train.py && git commit -qm leaky && cp fixed.py train.py && git commit -qam fixed
    """,
    "leakcheck report DIR --html report.html": "leakcheck run --record DIR --steps 30 train.py",
}


def command_lines(page: str) -> Iterator[str]:
    """Every command line of a page: in blocks, in the steps of YAML, and within sentences."""
    for language, block in FENCE.findall(page):
        for line in block.splitlines():
            yield from _of_block(language, line)
    prose = FENCE.sub("", page)
    yield from (span for span in re.findall(r"`([^`\n]+)`", prose) if _is_command(span))


def _of_block(language: str, line: str) -> Iterator[str]:
    if language == "sh":
        command, _, comment = line.partition(" #")
        yield from (part.strip() for part in command.split("&&"))
        yield from (part.strip() for part in re.findall(r"or: (leakcheck .*)", comment))
    elif language == "" and line.startswith("$ "):
        yield line[2:]
    elif language == "yaml":
        step = line.strip().removeprefix("- ").removeprefix("run: ")
        if _is_command(step):
            yield step


def _is_command(text: str) -> bool:
    return text.partition(" ")[0] in PROGRAMS and " " in text


FOUND = list(dict.fromkeys(command_lines(README)))


def test_command_lines_are_found_wherever_a_page_has_them():
    page = """\
Say `leakcheck rules` or `--html`, `leakcheck`, `from x import y`.

```sh
pip install x && leakcheck run a.py  # or: leakcheck run -m a
```

```
$ leakcheck isolate b.py
leakcheck: isolated b.py in 5 runs
```

```yaml
# pipx run nothing
- uses: actions/checkout@v4
- run: pipx run torch-leakcheck check .
    - git status --short
```

```python
leakcheck = 1
```
"""
    assert list(command_lines(page)) == [
        "pip install x",
        "leakcheck run a.py",
        "leakcheck run -m a",
        "leakcheck isolate b.py",
        "pipx run torch-leakcheck check .",
        "git status --short",
        "leakcheck rules",
    ]


def test_no_command_line_is_passed_over_and_none_is_listed_that_is_gone():
    assert sorted(FOUND) == sorted((*RUN, *NOT_RUN))


def test_the_page_is_short_enough_to_be_read():
    watch = README.partition("## Watch a run")[2].partition("<img")[0]

    assert len(README.splitlines()) <= 180
    assert len(FENCE.sub("", watch).split()) <= 250


def test_what_the_page_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)|src=\"([^\"]+)\"", README)
    files = [file or picture for file, picture in links]

    assert "examples/leak.png" in files
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert (ROOT / "examples" / "leak.png").stat().st_size < 200_000


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, forked: Forks) -> Path:
    """A folder of commands: this checkout as `leakcheck`, also where pipx would install it."""
    folder = tmp_path_factory.mktemp("bin")
    run = f"exec {forked.python} -c 'from leakcheck.cli import main; main()' \"$@\""
    scripts = {
        "leakcheck": run,
        "pipx": f'[ "$1 $2" = "run torch-leakcheck" ] || exit 9\nshift 2\n{run}',
        "python": f'exec {forked.python} "$@"',
        "pytest": f'exec {forked.python} -m pytest -p no:cacheprovider "$@"',
        "torchrun": f'exec {forked.python} -m torch.distributed.run "$@"',
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def place(tmp_path: Path, programs: Path) -> Path:
    """The folder of somebody who reads the page."""
    files = {
        "train.py": TRAIN,
        "package/train.py": TRAIN,
        "leaky_train.py": LEAKY,
        "examples/leaky_train.py": LEAKY,
        "src/training.py": COLLECTING,
        "test_training.py": TEST,
        "pyproject.toml": next(block for kind, block in FENCE.findall(README) if kind == "toml"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot()))
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(programs)
    return tmp_path


def snapshot() -> dict[str, object]:
    """What torch records of ten equal steps that free all they allocate."""
    mib, entries = 1 << 20, [("segment_alloc", 0, 128)]
    for _ in range(10):
        made = [("alloc", 0, 30), ("alloc", 32, 40), ("alloc", 72, 20)]
        entries += [*made, *(("free_completed", *rest) for _, *rest in reversed(made))]
    segment = {"address": 0, "total_size": 128 * mib, "blocks": []}
    events = [{"action": a, "addr": at * mib, "size": size * mib} for a, at, size in entries]
    return {"segments": [segment], "device_traces": [events]}


def shell(line: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
        **{"HOME": str(folder), "OMP_NUM_THREADS": "1", "GIT_CONFIG_NOSYSTEM": "1"},
        **{
            f"GIT_{who}_{what}": "x"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.run(
        ["bash", "-ec", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("line", RUN)
def test_a_command_line_runs_as_printed(line: str, place: Path, programs: Path):
    if line.startswith("git") and shutil.which("git") is None:
        pytest.skip("needs git")
    prepared = shell(PREPARE.get(line, ""), place, programs)
    assert prepared.returncode == 0, prepared.stderr

    done = shell(line, place, programs)

    assert done.returncode == RUN[line], done.stdout + done.stderr


def test_every_option_named_in_a_sentence_is_one_of_ours():
    prose = FENCE.sub("", README)
    spans = (span for span in re.findall(r"`([^`\n]+)`", prose) if not _is_command(span))
    named = set(re.findall(r"--[a-z][a-z0-9-]*", " ".join(spans)))
    context = click.Context(leakcheck)
    commands = [leakcheck.get_command(context, name) for name in COMMANDS]
    options = chain.from_iterable(param.opts for each in commands if each for param in each.params)

    assert named
    assert named <= set(options)
