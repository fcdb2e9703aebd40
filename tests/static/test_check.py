from __future__ import annotations

import gc
import os
from pathlib import Path

import libcst as cst
import pytest

from leakcheck.errors import RuleError, UsageError
from leakcheck.model import Report
from leakcheck.static import checker, workspace
from leakcheck.static.check import check_files, check_paths
from leakcheck.static.checker import Checker, Settings
from leakcheck.static.select import Layer
from leakcheck.static.workspace import Workspace

LEAKY = """
import torch

def train(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
METER = """
import torch

class Meter:
    def __init__(self):
        self.total = 0

    def update(self, value):
        self.total = self.total + value

    def mean(self):
        return self.total
"""
FED = """
def train(model, loader, criterion, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.update(loss)
"""
TOY_RULES = Path(__file__).parent.parent / "toy_rules"
TOYS = Settings(rule_sets=(TOY_RULES,), layers=(Layer(select=("TOY1", "LK001")),))


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path.absolute()


def lines(report: Report) -> list[str]:
    found = [f"{f.location.path}:{f.location.line}:{f.location.column} {f.code}"
             for f in report.findings]  # fmt: skip
    return found + [f"{each.path} {each.reason}" for each in report.unreadable]


def test_folders_are_checked_and_findings_sorted_by_place():
    write("b.py", "keep(loss)\n")
    write("a/c.py", "x = 1\nt += loss; keep(loss)\n")
    write("clean.py", "x = 1\n")

    report = check_paths(["."], TOYS)

    assert lines(report) == ["a/c.py:2:1 TOY102", "a/c.py:2:12 TOY101", "b.py:1:1 TOY101"]
    assert (report.checked_files, report.exit_code) == (3, 1)


def test_columns_count_characters_after_tabs_form_feeds_and_a_bom():
    write(
        "a.py", b"\xef\xbb\xbfkeep(loss)\r\nif x:\r\n\t'\xc3\xa9'; keep(loss)\r\n\x0ckeep(loss)\r\n"
    )

    report = check_paths(["a.py"], TOYS)

    assert lines(report) == ["a.py:1:1 TOY101", "a.py:3:7 TOY101", "a.py:4:2 TOY101"]
    assert [f.context for f in report.findings] == [
        "keep(loss)",
        "\t'é'; keep(loss)",
        "\fkeep(loss)",
    ]


BROKEN = {
    "syntax.py": b"import torch\nx = 1\ndef f(:\n",
    "no_torch.py": b"def f(:\n",
    "binary.py": b"\x7fELF\x00\x00torch",
    "latin.py": b"import torch\nx = '\xe9'\n",
    "nul.py": b"import torch\nx = '\x00'\n",
    "parens.py": b"import torch\nx = " + b"(" * 1000 + b")" * 1000 + b"\n",
    "minus.py": b"import torch\nx = " + b"-" * 1000 + b"1  # keep\n",
    "sum.py": b"import torch\nx = " + b"1 + " * 1000 + b"1  # keep\n",
    "ifs.py": b"import torch\n" + b"".join(b" " * n + b"if x:\n" for n in range(1000)) + b" " * 1000
              + b"x\n",
    "calls.py": b"import torch\nkeep" + b"()" * 5000 + b"\n",
    "lambdas.py": b"import torch\nkeep(" + b"lambda: " * 5000 + b"1)\n",
    "huge.py": b"x = 1\n" * 1_000_000,
    "notebook.ipynb": b"{",
}  # fmt: skip


def test_a_file_that_cannot_be_checked_is_one_line_and_the_others_are_checked():
    for name, raw in BROKEN.items():
        write(name, raw)
    os.symlink("nowhere", "dangling.py")
    write("good.py", "keep(loss)\n")

    report = check_paths(["."], TOYS)

    assert [f.location.path for f in report.findings] == ["good.py"]
    assert [each.path for each in report.unreadable] == sorted([*BROKEN, "dangling.py"])
    assert all(each.reason and "\n" not in each.reason for each in report.unreadable)
    assert report.checked_files == 1
    assert report.exit_code == 1


def test_only_unreadable_files_is_a_failure_not_a_finding():
    write("broken.py", "def f(:\n")

    assert check_paths(["."], TOYS).exit_code == 2


def test_declared_encodings_are_read():
    write("a.py", "# coding: latin-1\nx = 'é'; keep(loss)\n".encode("latin-1"))

    assert lines(check_paths(["."], TOYS)) == ["a.py:2:10 TOY101"]


def test_a_rule_that_crashes_spoils_its_file_alone():
    write("a.py", "crash\n")
    write("b.py", "keep(loss)\n")
    told = Settings(rule_sets=(TOY_RULES,), layers=(Layer(select=("TOY",)),))

    report = check_paths(["."], told)

    assert lines(report) == [
        "b.py:1:1 TOY101",
        "a.py rule crashes failed: IndexError: list index out of range",
    ]


def test_imports_are_followed_whether_or_not_the_imported_file_is_checked():
    write("pkg/__init__.py", "")
    write("pkg/meters.py", "def add(x):\n    keep(x)\n")
    write("pkg/train.py", "from .meters import add\nadd(1)\n")
    write("main.py", "from pkg import meters\nimport pkg.meters as m\nmeters.add(1)\nm.add(2)\n")

    alone = check_paths(["pkg/train.py", "main.py"], TOYS)
    whole = check_paths(["."], TOYS)

    assert lines(alone) == ["main.py:3:1 TOY103", "main.py:4:1 TOY103", "pkg/train.py:2:1 TOY103"]
    assert lines(whole) == lines(alone)


def test_many_files_in_workers_give_what_one_process_gives():
    for own in range(60):
        imported = f"from m{own + 1} import g{own + 1} as g\ng(1)\n"
        write(f"m{own}.py", f"{imported}def g{own}(x):\n    keep(loss)\n")
    write("broken.py", "def f(:\n")
    serial = check_paths(["."], TOYS)

    parallel = check_paths(["."], Settings(**{**_fields(TOYS), "jobs": 3}))

    assert parallel == serial
    assert len(serial.findings) == 60 + 59


def test_rules_can_be_ignored_for_some_files():
    write("tests/a.py", "keep(loss)\nt += loss\n")
    write("a.py", "keep(loss)\n")
    told = Settings(**{**_fields(TOYS), "per_file_ignores": (("tests/", ("keeps-loss",)),)})

    assert lines(check_paths(["."], told)) == ["a.py:1:1 TOY101", "tests/a.py:2:1 TOY102"]


@pytest.mark.parametrize(
    ("layers", "codes"),
    [
        ([Layer(select=("keeps-loss",))], {"TOY101"}),
        ([Layer(select=("TOY101", "TOY102"))], {"TOY101", "TOY102"}),
        ([Layer(select=("TOY1",), ignore=("sums-loss",))], {"TOY101", "TOY103"}),
        ([Layer(select=("TOY1",)), Layer(select=("TOY102",))], {"TOY102"}),
        ([Layer(ignore=("TOY102",)), Layer(select=("TOY102",))], {"TOY102"}),
        ([Layer(select=("TOY102",)), Layer(extend_select=("TOY9",))], {"TOY102", "TOY901"}),
    ],
)
def test_each_layer_of_choice_comes_after_the_one_before(layers, codes):
    chosen = Checker(Settings(rule_sets=(TOY_RULES,), layers=tuple(layers)))

    assert {rule.code for rule in chosen.rules if rule.slug in chosen.chosen} == codes


def test_rules_that_are_not_default_wait_to_be_selected():
    chosen = Checker(Settings(rule_sets=(TOY_RULES,))).chosen

    assert {"keeps-loss", "unused-suppression"} <= chosen
    assert not {"calls-keeper", "crashes"} & chosen


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("keeps-los", 'no rule is called "keeps-los"; did you mean "keeps-loss"?'),
        ("TOY109", 'no rule is called "TOY109"; did you mean "TOY103"?'),
        ("QX", 'no rule is called "QX"; `leakcheck rules` lists them all'),
    ],
)
def test_an_unknown_rule_is_told_with_the_nearest(name, message):
    with pytest.raises(UsageError) as error:
        Checker(Settings(rule_sets=(TOY_RULES,), layers=(Layer(select=(name,)),)))

    assert str(error.value) == message


def test_a_rule_set_that_is_no_folder_is_told():
    with pytest.raises(RuleError, match=r'^rule set "nowhere" is not a folder$'):
        check_files([], Settings(rule_sets=(Path("nowhere"),)))


def test_an_unchanged_tree_is_taken_from_the_cache(monkeypatch):
    told = Settings(**{**_fields(TOYS), "cache_dir": Path(".cache")})
    write("a.py", "keep(loss)\n")
    write("b.py", "def f(:\n")
    first = check_paths(["."], told)

    def refuse(*_):
        raise AssertionError("a file was checked again")

    monkeypatch.setattr(checker.Checker, "check", refuse)
    assert check_paths(["."], told) == first


def _fields(settings: Settings) -> dict:
    return {name: getattr(settings, name) for name in Settings.__slots__}


def test_modules_unused_for_longest_are_forgotten_between_files(monkeypatch):
    monkeypatch.setattr(workspace, "MOST_LINES_KEPT", 10)
    for name in ("a", "b", "c"):
        write(f"{name}.py", "x = 1\n" * 6)
    modules = Workspace()
    first = {name: modules.find(name, "main.py") for name in ("a", "b", "c")}
    modules.find("a", "main.py")

    modules.trim()

    assert modules.find("a", "main.py") is first["a"]
    assert modules.find("b", "main.py") is not first["b"]


def test_a_checked_tree_is_freed_at_once_without_pythons_collector():
    write("train.py", LEAKY)
    checker = Checker(Settings())
    gc.collect()
    gc.disable()
    try:
        findings = checker.check(Path("train.py")).findings
        alive = [each for each in gc.get_objects() if type(each) is cst.Module]
    finally:
        gc.enable()

    assert ([f.rule for f in findings], alive) == (["undetached-accumulator"], [])


def test_a_file_is_judged_alike_whatever_was_checked_before_it():
    write("meters.py", METER)
    write("keeps.py", f"from meters import Meter\n{FED}")
    write("trains.py", f"from meters import Meter\n{FED}    meter.mean().backward()\n")

    alone = {name: check_paths([name]).findings for name in ("keeps.py", "trains.py")}
    for order in (["trains.py", "keeps.py"], ["keeps.py", "trains.py"]):
        one = Checker(Settings())
        assert {name: one.check(Path(name)).findings for name in order} == alone
        texts = {name: Path(name).read_text() for name in order}
        assert {name: one.check_text(texts[name], Path(name)) for name in order} == alone
    assert [len(alone[name]) for name in ("keeps.py", "trains.py")] == [1, 0]
