"""What a rule set of the project's says that its words mean, as a run goes by it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

PROGRAM = """\
import torch
harvest = [id][0]  # whose source says nothing
kept = []
for step in range(2000):
    kept.append(torch.ones(4, 4))
    torch.ones(3, requires_grad=True).sum().backward()
    if step == 1990:
        harvest(kept)
"""


@pytest.fixture
def with_words(tmp_path):
    (tmp_path / "ci").mkdir()
    (tmp_path / "leakcheck.toml").write_text('rule-sets = ["ci"]\n')
    return (tmp_path / "ci" / "verbs.toml").write_text


def test_a_word_that_is_said_to_take_something_away_is_waited_for(judged, with_words):
    assert judged(PROGRAM).returncode == 1

    with_words('[said]\ntakes = ["harvest"]\n')
    done = judged(PROGRAM)

    assert done.returncode == 2
    assert "`harvest(kept)` (program.py:8) may still take it away" in " ".join(done.stderr.split())


def test_a_table_that_cannot_be_read_is_told_before_the_program_runs(judged, with_words, tmp_path):
    with_words("[said]\ngrabs = []\n")

    done = judged("print('ran')\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"leakcheck: {tmp_path / 'ci' / 'verbs.toml'}: there is no list `grabs` in [said]\n"
    )
