from __future__ import annotations

import subprocess
import sys

import pytest

import leakcheck


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "statement",
    [
        "import leakcheck",
        "import leakcheck.pytest_plugin",
        "from click.testing import CliRunner; from leakcheck.cli import leakcheck as c; "
        "CliRunner().invoke(c, ['--help'])",
    ],
)
def test_starting_up_imports_neither_torch_nor_libcst(statement):
    assert loaded_by(statement).isdisjoint({"torch", "libcst"})


def test_every_public_name_resolves():
    assert all(hasattr(leakcheck, name) for name in leakcheck.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'leakcheck' has no attribute 'nope'"):
        leakcheck.nope  # noqa: B018
