"""An editable install, a wheel and a wheel from the sdist: each brings the rules along."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

ROOT = Path(__file__).parent.parent
LEAKY = """\
import torch

total = 0
for x in torch.rand(9, 9):
    loss = model(x)
    loss.backward()
    total += loss
"""

pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="these are the tests of a checkout"
)


def python(*args: str, path: Path | None = None, cwd: Path = ROOT) -> str:
    """Run Python with the dependencies of this environment and, first, the package at `path`."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, cwd=cwd, env=environment
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist and the wheel of the checkout."""
    folder = tmp_path_factory.mktemp("built")
    python("-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder))
    return folder


def unpacked_sdist(built: Path, to: Path) -> Path:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        # Python 3.10.12 and 3.11.4 brought filters
        sdist.extractall(to, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (folder,) = to.iterdir()
    return folder


def unpacked_wheel(built: Path, to: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(to)
    return to


def shown(site: Path, folder: Path) -> tuple[str, list[str]]:
    """Ask the package at `site` where it is, and check a leaky file with it."""
    (folder / "train.py").write_text(LEAKY)
    where = python("-c", "import leakcheck; print(leakcheck.__file__)", path=site, cwd=folder)
    found = python("-m", "leakcheck", "check", "train.py", "--output-format", "concise",
                   path=site, cwd=folder)  # fmt: skip
    return where.strip(), found.splitlines()


def rules_in(names: list[str], prefix: str) -> set[str]:
    return {
        name.removeprefix(prefix).split("/")[0]
        for name in names
        if name.startswith(prefix) and name.endswith("/rule.py")
    }


def assert_finds_the_leak(site: Path, folder: Path) -> None:
    where, found = shown(site, folder)

    assert where == str(site / "leakcheck" / "__init__.py")
    assert [line.split(": ")[:2] for line in found] == [["train.py:7:5", "undetached-accumulator"]]


def test_an_installed_wheel_finds_its_rules(built, tmp_path):
    site = unpacked_wheel(built, tmp_path / "site")

    assert_finds_the_leak(site, tmp_path)


def test_a_wheel_from_the_sdist_is_the_wheel_from_the_checkout(built, tmp_path):
    source = unpacked_sdist(built, tmp_path / "sdist")
    python("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again"), cwd=source)

    again = unpacked_wheel(tmp_path / "again", tmp_path / "site")

    assert contents(again) == contents(unpacked_wheel(built, tmp_path / "direct"))
    assert_finds_the_leak(again, tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "RECORD"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_an_editable_install_finds_the_rules_of_its_checkout(built, tmp_path):
    pytest.importorskip("editables")
    checkout = unpacked_sdist(built, tmp_path / "sdist")
    python("-m", "pip", "install", "--no-deps", "--no-index", "--no-build-isolation", "--quiet",
           "--ignore-installed", "--prefix", str(tmp_path / "prefix"), "--editable",
           str(checkout))  # fmt: skip
    (link,) = (tmp_path / "prefix").rglob("*.pth")
    assert link.read_text().strip() == str(checkout)

    assert_finds_the_leak(checkout, tmp_path)

    rule = checkout / "rules" / "undetached-accumulator" / "rule.py"
    rule.write_text(rule.read_text().replace('"LK101"', '"LK199"'))
    listed = python("-m", "leakcheck", "rules", path=checkout, cwd=tmp_path)
    assert "LK199 * undetached-accumulator" in listed


def test_wheel_and_sdist_hold_every_rule_and_no_litter(built):
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    here = {path.parent.name for path in (ROOT / "rules").glob("*/rule.py")}

    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = ["/".join(name.split("/")[1:]) for name in archive.getnames()]

    assert rules_in(in_wheel, "leakcheck/rules/") == here
    assert rules_in(in_sdist, "rules/") == here
    for names in (in_wheel, in_sdist):
        assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert "leakcheck/py.typed" in in_wheel
    assert {"README.md", "LICENSE", "pyproject.toml"} <= set(in_sdist)
    assert {name.split("/")[0] for name in in_wheel} == {
        "leakcheck", next(name.split("/")[0] for name in in_wheel if ".dist-info" in name)
    }  # fmt: skip
