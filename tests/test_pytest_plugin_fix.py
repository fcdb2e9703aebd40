"""`pytest --leakcheck-fix` prints, under a test that leaks, the edit that is proved to end it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest_plugins = ["pytester"]

pytestmark = pytest.mark.usefixtures("forked_python")
TRAINING = """
import torch
from torch import nn

def test_training(leak_sentinel):
    torch.manual_seed(0)
    model = nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = {kept}

    def step():
        {nonlocal_}
        loss = model(torch.randn(4, 16)).pow(2).mean()
        {line}
        optimizer.zero_grad()
        {backward}
        optimizer.step()

    leak_sentinel.repeat(step, 300)
"""


def test_the_proved_diff_stands_under_the_failure_and_the_file_is_as_it_was(pytester):
    source = TRAINING.format(
        kept="[]", nonlocal_="pass", line="kept.append(loss)", backward="loss.backward()"
    )
    file = pytester.makepyfile(source)

    result = pytester.runpytest_subprocess("--leakcheck-fix")

    result.assert_outcomes(failed=1)
    name = file.name
    result.stdout.fnmatch_lines(
        [
            "*- leakcheck fix -*",
            f"fixed: {name}::test_training: keep the number: .item()",
            f"--- a/{name}",
            f"+++ b/{name}",
            "-        kept.append(loss)",
            "+        kept.append(loss.item())",
            "  losses         bit-identical (300 calls of backward)",
        ]
    )
    assert file.read_text().strip() == source.strip()


def test_an_edit_that_changes_what_is_learned_is_not_printed_as_a_proof(pytester):
    source = TRAINING.format(
        kept="0",
        nonlocal_="nonlocal kept",
        line="kept = 0.9 * kept + 0.1 * loss",
        backward="(loss + kept).backward(retain_graph=True)",
    )
    file = pytester.makepyfile(source)

    result = pytester.runpytest_subprocess("--leakcheck-fix")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- leakcheck fix -*",
            f"no edit is proved: {file.name}::test_training still leaks; * tried",
        ]
    )
    result.stdout.no_fnmatch_line("+++ b/*")


def test_without_the_option_nothing_is_run_again(pytester):
    source = TRAINING.format(
        kept="[]", nonlocal_="pass", line="kept.append(loss)", backward="loss.backward()"
    )
    pytester.makepyfile(source)

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*- leakcheck fix -*")
