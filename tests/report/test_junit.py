from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Finding, Location, Report
from leakcheck.report import render

EXPECTED = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites name="leakcheck" tests="5" failures="4" errors="1">
  <testsuite name="src/train.py" tests="1" failures="1" errors="0">
    <testcase name="undetached-accumulator:26:13" classname="src/train.py">
      <failure message="`total_loss` keeps the graph of every `loss`">line 26, column 13: \
`total_loss` keeps the graph of every `loss`
use loss.item()</failure>
    </testcase>
  </testsuite>
  <testsuite name="src/été, 1:2.py" tests="2" failures="2" errors="0">
    <testcase name="undetached-collection:3:1" classname="src/été, 1:2.py">
      <failure message="`outputs` keeps 100 % of&#10;every graph">line 3, column 1: \
`outputs` keeps 100 % of
every graph</failure>
    </testcase>
    <testcase name="undetached-collection:9:1" classname="src/été, 1:2.py">
      <failure message="`outputs` keeps 100 % of&#10;every graph">line 9, column 1: \
`outputs` keeps 100 % of
every graph</failure>
    </testcase>
  </testsuite>
  <testsuite name="nb.ipynb" tests="1" failures="1" errors="0">
    <testcase name="growing-log:cell 5:2:1" classname="nb.ipynb">
      <failure message="the log \ufffd[31mgrows">cell 5, line 2, column 1: the log \ufffd[31mgrows\
</failure>
    </testcase>
  </testsuite>
  <testsuite name="src/broken.py" tests="1" failures="0" errors="1">
    <testcase name="unreadable" classname="src/broken.py">
      <error message="line 3: invalid syntax &lt;&amp;&gt;" />
    </testcase>
  </testsuite>
</testsuites>"""


def test_each_file_is_a_suite_and_each_finding_a_failed_case(checked):
    assert render(checked, "junit") == EXPECTED


def test_a_clean_check_is_one_case_that_passed():
    suites = ET.fromstring(render(Report(checked_files=3), "junit").encode())

    assert suites.attrib == {"name": "leakcheck", "tests": "1", "failures": "0", "errors": "0"}
    assert [case.get("name") for case in suites.iter("testcase")] == ["check"]


@given(st.text(st.characters(codec=None)))
def test_any_message_whatever_makes_well_formed_xml(message):
    finding = Finding("r", "LK999", Location(message or "a", 1, 1, 1, 2), message)

    ET.fromstring(render(Report((finding,)), "junit").encode())
