"""Processes that need not import torch: forks of a server, and an executable that stands for them.

What they are and what they are not is said in `fork_server`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.fork_client import Fork

HERE = Path(__file__).parent
# the site's packages are not looked for: it must start at once
PYTHON = """\
#!{python} -IS
import sys
sys.path.append({here!r})
from fork_client import main
main({place!r}, {python!r}, whole_heap={whole_heap})
"""
# by another name than a file's, for the server is no part of the programs that are watched
SERVER = """\
import sys
sys.path[0] = {here!r}
exec(compile(open({file!r}).read(), "<forks>", "exec"))
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Forks:
    """Runs leakcheck or pytest in forks of one process; `python` runs what Python would.

    `python_whole_heap` does so with all that was imported on the heap, where a look passes it.
    `environment`: that of the session as it began, without what pytest tells its plugins: no
    program is part of the test that runs.
    """

    place: str
    python: str
    python_whole_heap: str
    environment: Mapping[str, str]

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
            "arguments": ["-m", tool, *args],
            "folder": str(folder),
            "environment": {**self.environment, **environment},
            "whole_heap": whole_heap,
        }
        with contextlib.ExitStack() as opened:
            streams = [opened.enter_context(open(os.devnull, "rb"))]
            streams += [opened.enter_context(text.open("wb")) for text in texts]
            fork = Fork(self.place, order, [stream.fileno() for stream in streams])
        status = fork.wait()
        return Ended(status, *(text.read_text() for text in texts))


def without_pytest(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables but for those that pytest tells its plugins."""
    return {name: value for name, value in environment.items() if name[:7] != "PYTEST_"}


@contextlib.contextmanager
def forks(variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[Forks]:
    """Start the process that is forked, with some more variables, and end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="forks-") as folder:
        place = os.path.join(folder, "socket")
        python, whole = (_executable(folder, place, whole_heap=whole) for whole in (False, True))
        server_code = SERVER.format(here=str(HERE), file=str(HERE / "fork_server.py"))
        command = [sys.executable, "-c", server_code, place, python]
        environment = {**without_pytest(os.environ), **variables}
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as server:
            _wait_for(place, server)
            yield Forks(place, python, whole, environment)
            server.communicate()


def _executable(folder: str, place: str, *, whole_heap: bool) -> str:
    python = Path(folder, "python-whole-heap" if whole_heap else "python")
    fields = {"python": sys.executable, "here": str(HERE), "place": place}
    python.write_text(PYTHON.format(whole_heap=whole_heap, **fields))
    python.chmod(0o755)
    return str(python)


def _wait_for(place: str, server: subprocess.Popen[bytes]) -> None:
    while not os.path.exists(place):
        if server.poll() is not None:
            raise RuntimeError(f"the process to fork ended with status {server.returncode}")
