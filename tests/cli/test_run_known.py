from __future__ import annotations

import pytest

pytest.importorskip("torch")

LEAKING = """\
import torch
kept = []
for step in range(4000):
    kept.append(torch.ones(4, 4))
    torch.ones(3, requires_grad=True).sum().backward()
"""
FILE = """\
[[leak]]
package = "click"
affected = ">=8"
cure = "call kept.clear() after each fold"
source = "TEAM-12"
match = { holder = "global `kept`" }
"""
TOLD = "known    click >=8 (TEAM-12, "


def test_a_leak_that_the_project_knows_is_told_with_its_cure(judged, tmp_path):
    (tmp_path / "known.toml").write_text(FILE)

    done = judged(LEAKING, "--known-leaks", "known.toml")

    assert done.returncode == 1
    assert TOLD in done.stderr
    assert "call kept.clear() after each fold" in " ".join(done.stderr.split())
    assert "  fix  " not in done.stderr


def test_the_settings_may_name_the_file(judged, tmp_path):
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "known.toml").write_text(FILE)
    (tmp_path / "leakcheck.toml").write_text('known-leaks = ["ci/known.toml"]\n')

    assert TOLD in judged(LEAKING).stderr


def test_without_it_the_same_leak_has_a_fix(judged):
    done = judged(LEAKING)

    assert "known  " not in done.stderr
    assert "  fix  " in done.stderr


def test_a_file_that_cannot_be_read_is_told_before_the_program_runs(judged):
    done = judged("print('ran')\n", "--known-leaks", "none.toml")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("leakcheck: none.toml: cannot be read: no such file or directory\n")
