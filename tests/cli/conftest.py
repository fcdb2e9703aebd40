from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from leakcheck import cli


@pytest.fixture
def leakcheck(monkeypatch, capsys):
    """Run `leakcheck ARGS` in this process; returns the exit status, stdout and stderr."""

    def run(*args: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["leakcheck", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit:
            cli.main()
        captured = capsys.readouterr()
        return int(exit.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def judged(leakcheck_run, tmp_path):
    """Write a program and judge it in a fork, for verdicts; returns how it ended."""

    def judged(source: str, *options: str):
        (tmp_path / "program.py").write_text(source)
        return leakcheck_run(*options, "program.py", folder=tmp_path)

    return judged


@pytest.fixture
def run(tmp_path):
    """Write a program and run it under leakcheck as a user does; returns the finished process."""

    def run(source: str, *options: str, args: tuple[str, ...] = ()):
        (tmp_path / "program.py").write_text(source)
        command = [sys.executable, "-m", "leakcheck", "run", *options, "program.py", *args]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=180,
        )

    return run
