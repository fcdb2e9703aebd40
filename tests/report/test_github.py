from __future__ import annotations

from leakcheck.report import render


def test_each_finding_is_a_command_that_annotates_its_line(checked):
    assert render(checked, "github").split("\n") == [
        "::warning title=leakcheck (undetached-accumulator),file=src/train.py,line=26,endLine=26,"
        "col=13,endColumn=31::`total_loss` keeps the graph of every `loss`%0Ause loss.item()",
        "::error title=leakcheck (undetached-collection),file=src/été%2C 1%3A2.py,line=3,endLine=4"
        "::`outputs` keeps 100 %25 of%0Aevery graph",
        "::error title=leakcheck (undetached-collection),file=src/été%2C 1%3A2.py,line=9,endLine=9,"
        "col=1,endColumn=9::`outputs` keeps 100 %25 of%0Aevery graph",
        "::notice title=leakcheck (growing-log),file=nb.ipynb::"
        "cell 5, line 2: the log \x1b[31mgrows",
        "::error title=leakcheck,file=src/broken.py::line 3: invalid syntax <&>",
    ]
