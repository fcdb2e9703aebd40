from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from leakcheck.static import checker
from leakcheck.static.check import check_paths
from leakcheck.static.checker import Settings
from leakcheck.static.select import Layer

TOY_RULES = Path(__file__).parent.parent / "toy_rules"


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def told() -> Settings:
    shutil.copytree(TOY_RULES, "rules")
    layers = (Layer(select=("TOY1",)),)
    return Settings(rule_sets=(Path("rules"),), layers=layers, cache_dir=Path(".cache"))


@pytest.fixture
def checked(monkeypatch) -> list[str]:
    """The files that were really checked."""
    names: list[str] = []
    check = checker.Checker.check

    def recorded(self, path):
        names.append(path.name)
        return check(self, path)

    monkeypatch.setattr(checker.Checker, "check", recorded)
    return names


def findings(told: Settings) -> list[str]:
    report = check_paths(["src"], told)
    return [f"{f.location.path}:{f.location.line} {f.code}" for f in report.findings]


def write(**files: str) -> None:
    Path("src").mkdir(exist_ok=True)
    for name, text in files.items():
        Path(f"src/{name}.py").write_text(text)


def test_only_what_changed_is_checked_again(told, checked):
    write(a="keep(loss)\n", b="x = 1\n")
    first = findings(told)
    write(b="t += loss\n")
    checked.clear()

    assert findings(told) == [*first, "src/b.py:1 TOY102"]
    assert checked == ["b.py"]


def test_a_touched_file_is_not_checked_again(told, checked):
    write(a="keep(loss)\n")
    findings(told)
    write(a="keep(loss)\n")
    checked.clear()

    assert findings(told) == ["src/a.py:1 TOY101"]
    assert checked == []


def test_a_file_is_checked_again_when_what_it_imports_changes(told, checked):
    write(a="from b import f\nf(1)\n", b="from c import g\n", c="", other="x = 1\n")
    assert findings(told) == []
    write(b="def f(x):\n    keep(x)\n")
    checked.clear()

    assert findings(told) == ["src/a.py:2 TOY103"]
    assert sorted(checked) == ["a.py", "b.py"]


def test_a_file_is_checked_again_when_what_it_imports_comes_or_goes(told, checked):
    write(a="from b import f\nf(1)\n", other="x = 1\n")
    assert findings(told) == []
    checked.clear()
    write(b="def f(x):\n    keep(x)\n")

    assert findings(told) == ["src/a.py:2 TOY103"]
    assert sorted(checked) == ["a.py", "b.py"]
    Path("src/b.py").unlink()
    assert findings(told) == []


def test_another_choice_of_rules_is_another_question(told):
    write(a="keep(loss)\nt += loss\n")
    assert findings(told) == ["src/a.py:1 TOY101", "src/a.py:2 TOY102"]

    assert findings(replace(told, layers=(Layer(select=("TOY102",)),))) == ["src/a.py:2 TOY102"]
    ignores = (("src/", ("TOY102",)),)
    assert findings(replace(told, per_file_ignores=ignores)) == ["src/a.py:1 TOY101"]


def test_a_rule_that_was_edited_asks_again(told, checked):
    write(a="keep(loss)\n")
    findings(told)
    rule = Path("rules/keeps-loss/rule.py")
    rule.write_text(rule.read_text().replace("TOY101", "TOY199"))

    assert findings(told) == ["src/a.py:1 TOY199"]


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b'{"key": 1}', b"\xff" * 100])
def test_a_damaged_entry_is_as_good_as_none(told, damage):
    write(a="keep(loss)\n")
    first = findings(told)
    entries = list(Path(".cache").rglob("*.json"))
    for entry in entries:
        entry.write_bytes(damage)

    assert entries
    assert findings(told) == first


def test_a_cache_that_cannot_be_written_changes_nothing(told):
    Path(".cache").write_text("a file, not a folder")
    write(a="keep(loss)\n")

    assert findings(told) == ["src/a.py:1 TOY101"]


def test_the_folder_marks_itself_as_a_cache_that_git_ignores(told):
    write(a="keep(loss)\n")
    findings(told)

    assert Path(".cache/.gitignore").read_text() == "*\n"
    assert Path(".cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f")
