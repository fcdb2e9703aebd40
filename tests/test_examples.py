"""Every example does what its first lines say."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")
EXAMPLES = Path(__file__).parent.parent / "examples"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def python(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )


def unwrapped(text: str) -> str:
    """Undo the breaks at 80 columns, which depend on how long the path of the checkout is."""
    return " ".join(text.split())


def test_the_leaky_script_is_found_in_the_source_and_on_the_run(tmp_path):
    script = EXAMPLES / "leaky_train.py"

    checked = python("leakcheck", "check", "--output-format", "concise", script, cwd=tmp_path)
    ran = python("leakcheck", "run", script, cwd=tmp_path)

    assert checked.returncode == 1
    assert "leaky_train.py:28:13: undetached-accumulator: " in checked.stdout
    assert ran.returncode == 1
    assert "leaky_train.py:28 total_loss += loss" in unwrapped(ran.stderr)
    assert "held by local `total_loss` in main()" in unwrapped(ran.stderr)


def test_the_fixed_script_is_clean_in_the_source_and_on_the_run(tmp_path):
    script = EXAMPLES / "fixed_train.py"

    checked = python("leakcheck", "check", script, cwd=tmp_path)
    ran = python("leakcheck", "run", "--steps", "200", script, cwd=tmp_path)

    assert checked.returncode == 0
    assert ran.stderr.startswith("leakcheck: steady in ")
    assert ran.returncode == 0


def test_the_tests_with_pytest_pass(tmp_path):
    done = python("pytest", "-q", EXAMPLES / "test_with_pytest.py", cwd=tmp_path)

    assert done.stdout.splitlines()[-1].startswith("2 passed"), done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("lightning"), reason="Lightning is not installed")
def test_the_lightning_callback_names_the_line(tmp_path):
    plain = subprocess.run(
        [sys.executable, EXAMPLES / "lightning_train.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert plain.returncode == 0
    assert "lightning_train.py:24 self.history.append(loss)" in unwrapped(plain.stderr)


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no distributed")
def test_the_rank_that_leaks_is_told(tmp_path):
    launch = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    run = ("-m", "leakcheck", "run", "--record", "records")

    launched = python(*launch, *run, EXAMPLES / "ddp_train.py", cwd=tmp_path)
    told = python("leakcheck", "report", "records", cwd=tmp_path)

    assert launched.returncode == 0, launched.stderr
    assert told.returncode == 1
    assert "note: rank 1 growing; rank 0 steady" in told.stdout
    assert "losses.append(loss)" in told.stdout


def test_the_cell_that_leaks_is_found_by_check(tmp_path):
    notebook = EXAMPLES / "notebook.ipynb"

    done = python("leakcheck", "check", "--output-format", "concise", notebook, cwd=tmp_path)

    assert done.returncode == 1
    assert "notebook.ipynb:cell 3:8:9" in done.stdout


KERNEL = """\
import json, sys
names = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1], encoding="utf-8"))["cells"]):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"<cell {number}>", "exec"), names)
"""


def test_the_notebook_finds_its_leak_when_it_is_run(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)  # a process of its own, as a notebook has

    done = python("kernel", EXAMPLES / "notebook.ipynb", cwd=tmp_path)

    assert done.stdout == "growing local `total_loss` in train()\n", done.stderr


def test_a_run_writes_its_page_with_charts(tmp_path):
    done = python(
        "leakcheck", "run", "--html", "page.html", EXAMPLES / "leaky_train.py", cwd=tmp_path
    )

    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert done.returncode == 1
    assert "Autograd graph" in page
    assert '"graph.nodes +8 a step"' in page
