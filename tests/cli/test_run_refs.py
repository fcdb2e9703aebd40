from __future__ import annotations

import os
from pathlib import Path

import pytest

from leakcheck.cli.graphviz import drawn

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("forked_python")

LEAKING = """\
import torch
kept = []
for step in range(4000):
    kept.append(torch.ones(4, 4))
    torch.ones(3, requires_grad=True).sum().backward()
"""


def test_who_holds_a_leak_is_drawn(run, tmp_path):
    done = run(LEAKING, "--refs", "refs.dot")

    text = (tmp_path / "refs.dot").read_text()
    assert done.returncode == 1
    assert text.startswith("digraph ObjectGraph {")
    assert '[label="global `kept`"]' in text
    assert "grows 1 tensor a step" in text


def test_without_graphviz_the_graph_itself_is_written_beside(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    done = run("print('ran')\n", "--refs", "refs.svg")

    assert (tmp_path / "refs.svg.dot").read_text().startswith("digraph ObjectGraph {")
    assert not (tmp_path / "refs.svg").exists()
    assert "Graphviz, which draws it, is not installed" in done.stderr


@pytest.fixture
def dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a program called `dot` in the place of Graphviz's, which need not be installed."""

    def write(script: str) -> None:
        program = tmp_path / "bin" / "dot"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return write


def test_graphviz_is_handed_the_graph_and_the_format(dot):
    dot('echo "$@"; cat')

    assert drawn("digraph {}", "svg") == b"-Tsvg\ndigraph {}"


def test_what_graphviz_says_is_told(dot):
    dot("echo 'Format: \"xyz\" not recognized' >&2; exit 1")

    with pytest.raises(OSError, match='dot says: Format: "xyz" not recognized'):
        drawn("digraph {}", "xyz")
