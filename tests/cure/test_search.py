"""Which edits are run, and what each is compared with; the runs are made up."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from leakcheck.cure.search import CureSearch
from leakcheck.experiments import Results, SourceSpan, Trial
from leakcheck.model import Holder, Location, Place, Reason, Report, Run, Suspect, Trend

SOURCE = "total = 0\nfor step in range(400):\n    total += loss\nprint(total)\n"
PLACE = Location("train.py", 3, 1, 3, 1)
LEAK = Suspect("graph", "a loss", locations=(PLACE,), holder=Holder("global", "total"))


def made(verdict: str, steps: int, losses: int | None = None, stopped=False, shift=0) -> Trial:
    rate = 5.0 if verdict == "growing" else 0.0
    trend = Trend("graph.nodes", "Nodes", rate, rate, rate, 9.0, 99, verdict)
    run = Run("train.py", steps, 1.0, ended="stopped" if stopped else "finished")
    suspects = (LEAK,) if rate else ()
    results = Results(losses=tuple((each + shift, 0.5) for each in range(losses or steps)))
    report = Report(verdict=verdict, trends=(trend,), suspects=suspects, run=run)
    return Trial(report, results, counted=steps)


def course(run):
    return CureSearch(run, lambda path: SOURCE, tries=8, stops_at=lambda trial: trial.counted + 1)


def edits(answer):
    return [(each.candidate, each.outcome) for each in answer.attempts]


def test_of_two_edits_that_are_proved_no_third_is_run():
    found = course(
        lambda texts, stop_at, leak, at_once, asked: made("steady" if texts else "growing", 60)
    )

    assert edits(found.follow("train.py")) == [("item", "proved"), ("detach", "proved")]


def test_with_one_proved_no_more_than_twice_the_steps_are_run():
    def run(texts, stop_at, leak, at_once, asked):
        text = texts.get("train.py", "")
        return made("steady" if texts else "growing", 60, shift="item" in text)

    assert edits(course(run).follow("train.py")) == [("item", "changes"), ("detach", "proved")]


def test_a_leak_that_stays_is_no_longer_run_and_needs_no_results():
    def run(texts, stop_at, leak, at_once, asked):
        assert leak == (LEAK.fingerprint if texts else "")
        return made("growing", 40 if texts else 60)

    assert {outcome for _, outcome in edits(course(run).follow("train.py"))} == {"stays"}


@pytest.mark.parametrize(("loss", "shown"), [(0.25, "proved"), (0.5, "unclear")])
def test_a_time_that_is_printed_is_no_result_and_a_loss_beside_it_is(loss, shown):
    seconds = count()

    def run(texts, stop_at, leak, at_once, asked):
        trial = made("steady" if texts else "growing", 60)
        stdout = f"loss {loss if texts else 0.25} after {next(seconds)} s\n"
        return replace(trial, results=replace(trial.results, stdout=stdout))

    assert {outcome for _, outcome in edits(course(run).follow("train.py"))} == {shown}


def test_an_edit_that_ends_the_leak_in_part_is_no_reason_to_try_no_other():
    def run(texts, stop_at, leak, at_once, asked):
        if "item" not in texts.get("train.py", ""):
            return made("steady" if texts else "growing", 60)
        trial = made("unclear", 60)
        report = replace(trial.report, reason=Reason.of("unconfirmed", resources=(), held=None))
        steady = tuple(replace(each, verdict="steady") for each in report.trends)
        return replace(trial, report=replace(report, trends=steady))

    answer = course(run).follow("train.py")

    assert edits(answer)[:2] == [("item", "helps"), ("detach", "proved")]
    assert answer.chosen.candidate == "detach"


class Timed:
    """A program that a clock ends: each run of it makes another number of steps."""

    def __init__(self, shift: int = 0) -> None:
        self.count, self.shift, self.stops = 0, shift, []

    def __call__(self, texts, stop_at, leak, at_once, asked):
        self.count += 1
        self.stops.append(stop_at)
        own = 400 - 10 * self.count
        steps = min(own, stop_at or own)
        verdict = "steady" if texts else "growing"
        return made(verdict, steps, stopped=steps == stop_at, shift=self.shift * bool(texts))


def test_runs_that_a_clock_ends_are_compared_up_to_a_step_that_each_comes_to():
    run = Timed()

    answer = course(run).follow("train.py")

    assert edits(answer) == [("item", "proved"), ("detach", "proved")]
    assert run.stops == [None, 391, 391, 185, 185, 185]
    assert {(each.base.steps, each.trial.steps) for each in answer.attempts} == {(185, 185)}


def test_results_that_differ_before_that_step_are_no_proof():
    answer = course(Timed(shift=1)).follow("train.py")

    assert {outcome for _, outcome in edits(answer)} == {"changes"}


def test_fewer_steps_by_the_edit_alone_are_a_failure():
    def run(texts, stop_at, leak, at_once, asked):
        return made("steady", 50) if texts else made("growing", 60)

    answer = course(run).follow("train.py")

    assert {each.reason for each in answer.attempts} == {
        Reason.of("fewer-steps", steps=50, before=60)
    }
    assert answer.chosen is None


UNREAD = "kept = []\nfor step in range(400):\n    train()\n    kept.append(step)\n"
LINE = Location("train.py", 4, 1, 4, 1)
GATHERED = Suspect("tensor", "rows", locations=(LINE,), holder=Holder("global", "kept"))


def stacked(text: str, asked) -> Trial:
    """A run that comes to every line that is asked for but the last one of the text."""
    last = len(text.splitlines())
    is_left = last in asked.get("train.py", ())
    left = {SourceSpan("train.py", last, 0, last, 99)} if is_left else set[SourceSpan]()
    return replace(made("steady", 60), unreached=frozenset(left))


def test_what_a_line_that_did_not_run_may_need_is_no_proof():
    text = SOURCE.replace("print(total)", "if late:\n    curve = torch.stack([total])")

    def run(texts, stop_at, leak, at_once, asked):
        return stacked(texts["train.py"], asked) if texts else made("growing", 60)

    answer = CureSearch(run, lambda path: text, tries=2).follow("train.py")

    missed = Reason.of("read-later", code="curve = torch.stack([total])", path="train.py", line=5)
    shown = [(each.candidate, each.outcome, each.reason) for each in answer.attempts]
    assert shown == [("item", "unclear", missed), ("detach", "proved", None)]


@pytest.mark.parametrize(
    "texts",
    [
        {"plots.py": "def curve(values, to):\n    if to:\n        torch.stack(values)\n"},
        {"plots.py": "from train import total as losses\nif late:\n    torch.stack(losses)\n"},
        {"plots.py": "import train\nif late:\n    torch.stack(train.total)\n"},
    ],
)
def test_it_is_followed_into_other_files(texts):
    files = {"train.py": SOURCE.replace("print(total)", "curve(total, None)"), **texts}

    def run(texts, stop_at, leak, at_once, asked):
        left = frozenset(
            {SourceSpan("plots.py", 3, 0, 3, 99)} if 3 in asked.get("plots.py", ()) else ()
        )
        trial = replace(made("steady" if texts else "growing", 60), unreached=left)
        return replace(trial, loaded=("plots.py", "train.py"))

    first = CureSearch(run, files.get, tries=1).follow("train.py").attempts[0]

    assert (first.candidate, first.outcome) == ("item", "unclear")
    assert dict(first.reason.fields)["path"] == "plots.py"


def test_a_module_that_no_run_has_loaded_is_read_too():
    files = {
        "train.py": SOURCE.replace("print(total)", "if late:\n    import b.c\n    b.c.end(total)"),
        "b/c.py": "from . import d as last\ndef end(value):\n    last.learn(value)\n",
        "b/d.py": "def learn(loss):\n    torch.stack(loss)\n",
    }

    def run(texts, stop_at, leak, at_once, asked):
        left = {SourceSpan(path, line, 0, line, 99) for path in asked for line in asked[path]}
        left = {each for each in left if each.path == "b/d.py"}
        return replace(made("steady" if texts else "growing", 60), unreached=frozenset(left))

    first = CureSearch(run, files.get, tries=1).follow("train.py").attempts[0]

    missed = Reason.of("read-later", code="torch.stack(loss)", path="b/d.py", line=2)
    assert (first.candidate, first.outcome, first.reason) == ("item", "unclear", missed)


def tried(stopped: bool) -> set[str]:
    def run(texts, stop_at, leak, at_once, asked):
        trial = made("growing", 60, stopped=stopped)
        return replace(trial, report=replace(trial.report, suspects=(GATHERED,)))

    answer = CureSearch(run, lambda path: UNREAD, tries=12).follow("train.py")
    return {each.candidate for each in answer.attempts}


def test_what_a_whole_run_never_reads_may_go_and_what_a_stopped_one_did_not_may_not():
    assert {"drop", "place"} <= tried(stopped=False)
    assert tried(stopped=True).isdisjoint({"drop", "place"})


TWO = {
    "train.py": "total = 0\nfor step in range(400):\n    total += loss\n",
    "log.py": "rows = []\ndef log(out):\n    rows.append(out)\n",
}
KEPT = Suspect(
    "graph", "an output", locations=(Place("log.py", 3, ""),), holder=Holder("global", "rows")
)


def test_each_edit_of_several_leaks_is_tried_without_the_others_too():
    runs = []

    def run(texts, stop_at, leak, at_once, asked):
        runs.append(tuple(sorted(texts)))
        left = tuple(each for each in (LEAK, KEPT) if each.locations[0].path not in texts)
        trial = made("growing" if left else "steady", 60)
        slower = tuple(replace(each, high=len(left), low=len(left)) for each in trial.report.trends)
        return replace(trial, report=replace(trial.report, suspects=left, trends=slower))

    answer = CureSearch(run, TWO.get, tries=1).follow("train.py")

    assert runs == [(), ("train.py",), ("log.py", "train.py"), ("log.py",)]
    assert [each.path for each in answer.chosen.revisions] == ["log.py", "train.py"]
    assert answer.chosen.outcome == "proved"
    assert [(each.outcome, [one.path for one in each.revisions]) for each in answer.alone] == [
        ("helps", ["train.py"]),
        ("helps", ["log.py"]),
    ]


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("resource", ["cuda:0.allocated", "host.heap"])
def test_what_is_kept_on_a_device_may_be_kept_on_the_host_and_the_owner_decides(size, resource):
    def run(texts, stop_at, leak, at_once, asked):
        report = made("growing", 60).report
        trends = tuple(replace(each, resource=resource) for each in report.trends)
        return Trial(replace(report, trends=trends, suspects=(replace(KEPT, kind="tensor"),)))

    answer = CureSearch(run, TWO.get, tries=2, size=size).follow("train.py")

    moved = [
        each.asks
        for each in answer.choices
        if "    rows.append(out.detach().cpu())\n" in each.revisions[0].after
    ]
    expected = ["whether the host has room for all of it"]
    assert moved == (expected if resource.startswith("cuda") else [])
