"""Processes forked from one that has imported torch, pytest and leakcheck already.

To import torch, and what an optimizer's first step imports, is 3.4 of the 7 s that a program takes.
What was imported is off the heap of the forks: 330,000 objects that each look would pass, at 0.1 s
a look. A test of what looks do to a program asks for the whole heap, and so does one whose leak is
held by an imported module.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

SERVER = """
import gc, importlib, json, os, signal, sys
import pytest, torch, torch._dynamo
from leakcheck import cli

for name in ("cli.run", "report.terminal", "runtime.live", "static.check"):
    importlib.import_module("leakcheck." + name)
gc.collect()
gc.freeze()
for line in sys.stdin:
    order = json.loads(line)
    if (child := os.fork()) == 0:
        signal.alarm(300)  # ends a program that hangs
        if order["whole_heap"]:
            gc.unfreeze()
        os.chdir(order["folder"])
        sys.path[0] = order["folder"]  # as for `python -m`
        os.environ.update(order["environment"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, text in enumerate(order["texts"], 1):
            os.dup2(os.open(text, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        if order["tool"] == "pytest":
            sys.exit(pytest.main(order["args"]))
        sys.argv = ["leakcheck", *order["args"]]
        sys.exit(cli.main())
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Forks:
    """Runs leakcheck or pytest in forks of one process, one after another."""

    server: subprocess.Popen[str]

    def run(
        self,
        tool: str,
        *args: str,
        folder: Path,
        output: Path | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
        whole_heap: bool = False,
    ) -> Ended:
        """Run a tool in a folder; its output is kept there, or in another; returns how it ended."""
        texts = [(output or folder) / f"{name}.txt" for name in ("stdout", "stderr")]
        order = {
            "tool": tool,
            "args": args,
            "folder": str(folder),
            "texts": [str(text) for text in texts],
            "environment": dict(environment),
            "whole_heap": whole_heap,
        }
        orders, answers = self.server.stdin, self.server.stdout
        assert orders is not None
        assert answers is not None
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        status = int(answers.readline())
        return Ended(status, *(text.read_text() for text in texts))


@contextlib.contextmanager
def forks() -> Iterator[Forks]:
    """Start the process that is forked, and end it afterwards."""
    command, pipe = [sys.executable, "-c", SERVER], subprocess.PIPE
    # no program is part of the test that runs
    environment = {name: text for name, text in os.environ.items() if name[:7] != "PYTEST_"}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as server:
        yield Forks(server)
        server.communicate()
