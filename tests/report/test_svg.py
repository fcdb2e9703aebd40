from __future__ import annotations

from xml.etree import ElementTree

from leakcheck.model import Report
from leakcheck.report import render

SVG = "{http://www.w3.org/2000/svg}"


def test_the_plot_is_well_formed_and_names_every_curve(growing_run):
    root = ElementTree.fromstring(render(growing_run, "svg"))

    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"graph.nodes", "graph.nodes +11 a step", "host.rss"} <= set(texts)
    assert texts.count("step") == 2  # the axis of each chart
    assert texts[0] == "leakcheck: growing: 1 leak in 1,000 steps of train.py"


def test_a_report_without_samples_says_so():
    assert "no samples were recorded" in render(Report(verdict="steady"), "svg")
