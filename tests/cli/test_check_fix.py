from __future__ import annotations

import resource
from pathlib import Path

import pytest

TOY_RULES = Path(__file__).parent.parent / "toy_rules"
SETTINGS = f'rule-sets = ["{TOY_RULES}"]\nselect = ["TOY101", "TOY102", "LK001"]\n'
LEAKY = "for x in y:\n    keep(loss)\n    total += loss\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("leakcheck.toml").write_text(SETTINGS)


@pytest.fixture
def run(leakcheck):
    return lambda *args, stdin=b"": leakcheck("check", *args, stdin=stdin)


def write(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_fix_applies_safe_fixes_and_reports_what_is_left(run):
    write("train.py", LEAKY)

    status, out, err = run("--fix", "--output-format", "concise")

    assert Path("train.py").read_text() == LEAKY.replace("keep(loss)", "keep(loss.detach())")
    assert (status, err) == (1, "leakcheck: fixed 1 finding\n")
    assert out == "train.py:3:5: sums-loss: the sum keeps the graph of every loss\n"


def test_fixing_twice_is_fixing_once(run):
    write("train.py", LEAKY)
    assert run("--fix", "--unsafe-fixes", "-q") == (0, "", "")
    once = Path("train.py").read_bytes()

    assert run("--fix", "--unsafe-fixes", "-q") == (0, "", "")
    assert Path("train.py").read_bytes() == once


def test_a_fix_keeps_line_ends_byte_order_mark_encoding_and_mode(run):
    text = "# coding: latin-1\r\nx = 'é'\r\n\tif 1:pass\r\n".replace("\tif", "if")
    path = write("train.py", (text + "\x0ckeep(loss)\r\n").encode("latin-1"))
    marked = write("bom.py", b"\xef\xbb\xbfif x:\r\n\tkeep(loss)")
    path.chmod(0o755)

    assert run("--fix", "-q")[0] == 0

    assert path.read_bytes() == (text + "\x0ckeep(loss.detach())\r\n").encode("latin-1")
    assert path.stat().st_mode & 0o777 == 0o755
    assert marked.read_bytes() == b"\xef\xbb\xbfif x:\r\n\tkeep(loss.detach())"


def test_diff_shows_the_fix_writes_nothing_and_exits_with_1(run):
    write("train.py", LEAKY)

    status, out, err = run("--diff")

    assert (status, err) == (1, "")
    assert out == (
        "--- train.py\n+++ train.py\n@@ -1,3 +1,3 @@\n for x in y:\n-    keep(loss)\n"
        "+    keep(loss.detach())\n     total += loss\n"
    )
    assert Path("train.py").read_text() == LEAKY
    assert run("--diff", "--select", "TOY102") == (0, "", "")


def test_unused_suppressions_are_removed_by_fix(run):
    write("train.py", "x = 1  # leakcheck: ignore[keeps-loss] no longer\n")

    assert run("-q", "--output-format", "concise")[0] == 1
    assert run("--fix", "-q") == (0, "", "")
    assert Path("train.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("option", "reason"), [("--add-ignore", ""), ("--add-ignore=later", " later")]
)
def test_add_ignore_accepts_every_finding_by_a_comment(run, option, reason):
    write("train.py", LEAKY)

    assert run(option, "-q") == (0, "", "")
    assert Path("train.py").read_text() == (
        f"for x in y:\n    keep(loss)  # leakcheck: ignore[keeps-loss]{reason}\n"
        f"    total += loss  # leakcheck: ignore[sums-loss]{reason}\n"
    )


def test_fixed_standard_input_goes_to_standard_output(run):
    status, out, err = run("-", "--fix", stdin=LEAKY.encode())

    assert (status, out) == (1, LEAKY.replace("keep(loss)", "keep(loss.detach())"))
    assert err == "stdin.py:3:5: sums-loss: the sum keeps the graph of every loss\n"


def test_add_ignore_takes_no_path_for_a_reason(run):
    write("train.py", LEAKY)

    status, _, err = run("--add-ignore", "train.py")

    assert (status, Path("train.py").read_text()) == (2, LEAKY)
    assert err == (
        "leakcheck: Invalid value for '--add-ignore': \"train.py\" is a path; "
        "write the reason as --add-ignore=REASON\n"
    )


@pytest.mark.parametrize("option", ["--fix", "--add-ignore"])
def test_a_disk_that_is_full_costs_one_line_and_not_the_source(run, option):
    text = "keep(loss)\n" + "pass\n" * 400
    path = write("train.py", text)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # a longer write fails half-way
    try:
        status, out, err = run(option, "--no-cache")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert (status, out) == (2, "")
    assert err == f"leakcheck: {path.absolute()}: cannot be written: file too large\n"
    assert path.read_text() == text
    assert {each.name for each in Path().iterdir()} == {"leakcheck.toml", "train.py"}
