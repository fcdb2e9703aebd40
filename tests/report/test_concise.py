from __future__ import annotations

from leakcheck.report import render


def test_each_finding_is_one_line_that_editors_understand(checked):
    assert render(checked, "concise").split("\n") == [
        "src/train.py:26:13: undetached-accumulator: `total_loss` keeps the graph of every `loss`",
        "src/été, 1:2.py:3:1: undetached-collection: `outputs` keeps 100 % of\\nevery graph",
        "src/été, 1:2.py:9:1: undetached-collection: `outputs` keeps 100 % of\\nevery graph",
        "nb.ipynb:cell 5:2:1: growing-log: the log \\x1b[31mgrows",
        "src/broken.py: line 3: invalid syntax <&>",
    ]
