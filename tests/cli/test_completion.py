from __future__ import annotations

import os
import subprocess
import sys

import pytest


def completions(line: str) -> list[str]:
    words = line.split(" ")
    environment = os.environ | {
        "_LEAKCHECK_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-m", "leakcheck"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [entry.split(",")[1] for entry in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("leakcheck ch", ["check"]),
        ("leakcheck check --output-f", ["--output-format", "--output-file"]),
        ("leakcheck check --output-format s", ["sarif"]),
        ("leakcheck explain undetached-acc", ["undetached-accumulator"]),
        ("leakcheck check --select undetached-acc", ["undetached-accumulator"]),
    ],
)
def test_a_shell_completes_commands_options_and_rules(line, offered):
    assert sorted(completions(line)) == sorted(offered)


def test_the_line_in_the_help_gives_the_shell_its_script():
    command = [sys.executable, "-c", "from leakcheck.cli import main; main()"]
    environment = os.environ | {"_LEAKCHECK_COMPLETE": "zsh_source"}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("#compdef leakcheck")
