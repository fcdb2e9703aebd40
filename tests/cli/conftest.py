from __future__ import annotations

import io
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
