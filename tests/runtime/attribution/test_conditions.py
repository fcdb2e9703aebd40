"""Whether what is added only where it is new is mostly there already: a cache that fills."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.conditions import may_end, mostly_found
from leakcheck.runtime.introspection import frames

STEPS = 100
ASKED = {
    "if key not in kept:\n    kept[key] = x  # adds\n": 1,
    "if kept.get(key) is None:\n    kept[key] = x  # adds\n": 1,
    "try:\n    kept[key]\nexcept KeyError:\n    kept[key] = x  # adds\n": 2,
    "def get(key):\n    if key in kept: return kept[key]\n    kept[key] = x  # adds\n": 2,
    "for x in xs:\n    kept.setdefault(key, x)  # adds\n": 2,
}


@pytest.fixture
def found(tmp_path):
    """Say whether most is found, from how often two lines ran and how much was gained."""

    def found(source: str, asked_at: int, asked: int, added: int) -> bool:
        path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"  # sources are remembered
        path.write_text(textwrap.dedent(source))
        lines = source.splitlines()
        adds = next(number for number, text in enumerate(lines, 1) if "# adds" in text)
        visits = {(str(path), adds): added} | {(str(path), asked_at): asked}
        suspect = Suspect(
            "tensor", "", added / STEPS, locations=(Place(str(path), adds, lines[adds - 1]),)
        )
        return mostly_found((suspect,), visits, STEPS)

    return found


@pytest.mark.parametrize(("source", "asked_at"), ASKED.items())
def test_what_is_asked_for_is_mostly_there(found, source, asked_at):
    assert found(source, asked_at, asked=100, added=4)
    assert not found(source, asked_at, asked=100, added=90)
    assert not found(source, asked_at, asked=8, added=1)  # too few to say


def test_what_is_compared_by_size_is_no_question_for_a_key(found):
    assert not found("if loss > most:\n    kept.append(x)  # adds\n", 1, asked=100, added=4)


def test_what_is_added_on_every_step_asks_nothing(found):
    assert not found("kept.append(x)  # adds\n", 1, asked=100, added=4)


def test_what_is_set_far_more_often_than_it_gains_was_mostly_there(found):
    assert found("kept[key] = x  # adds\n", 1, asked=100, added=30)
    assert not found("kept[key] = x  # adds\n", 1, asked=100, added=100)


LOG = "def log(x):\n    kept.append(x)  # adds\n"


@pytest.mark.parametrize(
    ("calls", "ends"),
    [
        ("if step < 500: log(x)  # ran\n", True),
        ("if logger.left > 0:\n    logger.log(x)  # ran\n", True),
        ("def note(x):\n    log(x)  # ran\nif step < 500: note(x)  # ran\n", True),
        ("if step < 500: log(x)  # ran\nlog(y)  # ran\n", False),  # all that ran
        ("if step < 500: log(x)  # ran\nlog(y)\n", True),
        ("if step % 10 == 0: log(x)  # ran\n", False),
        ("if step < 500: log(x)\n", False),  # by another way
        ("callbacks.append(log)\nif step == 400: callbacks.remove(log)\n", True),
        ("callbacks.append(log)\ncallbacks.remove(log)\n", False),
        ("h = m.register_forward_hook(log)\nif step == 400: h.remove()\n", True),
        ("h = m.register_forward_hook(log)\nh.remove()\n", False),
        ("h = m.register_forward_hook(other)\nif step == 400: h.remove()\n", False),
        ("def log2(x):\n    log2(x)  # ran\n", False),
    ],
)
def test_a_condition_may_be_around_the_call_of_what_adds(tmp_path, monkeypatch, calls, ends):
    path = tmp_path / "program.py"
    path.write_text(LOG + calls)
    monkeypatch.setattr(frames, "own_files_with", lambda word: iter([str(path)]))
    numbered = enumerate(path.read_text().splitlines(), 1)
    visits = {(str(path), number): 9 for number, line in numbered if "# ran" in line}
    suspect = Suspect("tensor", "", locations=(Place(str(path), 2, ""),))

    assert may_end((suspect,), visits) is ends
