from __future__ import annotations

from leakcheck.model import Holder, LeakTrace, Link, Place, Report, Suspect
from leakcheck.report import render

STATES = Suspect(
    "object",
    "dict of State",
    0.4,
    100.0,
    Holder("attribute", "states", "Engine"),
    LeakTrace("global `engine`", (Link(".parts", "Parts"), Link("[x]", "State", 1 << 20, True))),
    (Place("s.py", 22, "self.states[key] = State()"),),
)
KEPT = Suspect(
    "tensor",
    'Tensor (3) of a "kind"',
    1,
    12,
    trace=LeakTrace("global `engine`", (Link(".parts", "Parts"), Link(".kept", "list"))),
)
DRAWN = r"""digraph ObjectGraph {
  node[shape=box, style=filled, fillcolor=white];
  o1[fontcolor=red];
  o1[label="global `engine`"];
  o1[fillcolor="0,0,1"];
  o1 -> o2 [label="parts",weight=2];
  o2[label="Parts"];
  o2[fillcolor="0,0,0.993"];
  o2 -> o3 [label="[x]"];
  o2 -> o4 [label="kept",weight=2];
  o3[label="State\n1.0 MiB in all\ndict of State\ngrows 0.4 objects a step, 100 B a step\ns.py:22"];
  o3[fillcolor="0.6,0.6,0.993"];
  o4[label="list\nTensor (3) of a \"kind\"\ngrows 1 tensor a step, 12 B a step"];
  o4[fillcolor="0.6,0.6,0.993"];
}"""


def test_what_two_leaks_are_held_by_is_drawn_once():
    assert render(Report(verdict="growing", suspects=(STATES, KEPT)), "dot") == DRAWN


def test_the_same_report_is_drawn_the_same_again():
    report = Report(verdict="growing", suspects=(STATES, KEPT))

    assert render(report, "dot") == render(report, "dot")


def test_two_references_that_read_alike_are_two():
    both = (Link("[x]", "list"), Link("[x]", "tuple"))
    suspects = [
        Suspect("object", "int", trace=LeakTrace("global `kept`", (link,))) for link in both
    ]

    drawn = render(Report(suspects=tuple(suspects)), "dot")

    assert drawn.count("o1 -> ") == 2


def test_a_leak_without_a_known_holder_is_a_node_of_its_own():
    drawn = render(Report(suspects=(Suspect("native", "heap", None, 4096.0),)), "dot")

    assert r'[label="held by nothing known\nheap\ngrows 4.0 KiB a step"]' in drawn


def test_a_run_without_a_leak_is_an_empty_graph():
    expected = "digraph ObjectGraph {\n  node[shape=box, style=filled, fillcolor=white];\n}"

    assert render(Report(verdict="steady"), "dot") == expected
