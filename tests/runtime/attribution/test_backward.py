"""A graph that is gathered for a backward yet to come is not told before that has run."""

from __future__ import annotations

import linecache

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.backward import backward_at, creating_graph
from tests.holders import held_by

CRITIC = "critic_loss.backward()  # ran\n"


def asked(tmp_path, source: str, holder: str, kind: str = "graph") -> str:
    """Return the backward that is waited for."""
    path = tmp_path / "program.py"
    path.write_text(source)
    linecache.checkcache()
    parsed.cache_clear()
    numbered = enumerate(source.splitlines(), 1)
    visits = {(str(path), number): 8 for number, line in numbered if "# ran" in line}
    suspect = Suspect(kind, "", holder=held_by(holder), locations=(Place(str(path), 1, ""),))
    place = backward_at([suspect], visits)
    return "" if place is None else place.code


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("kept.append(x)  # ran\n-torch.stack(kept).mean().backward()\n", "mean().backward()"),
        ("kept.append(x)  # ran\nloss = sum(kept)\nloss.backward()\n", "loss.backward()"),
        ("loss = 0\nfor x in kept: loss = loss - x\nloss.backward()\n", "loss.backward()"),
        ("for x, r in zip(kept, rs): parts.append(-x * r)\ncat(parts).backward()\n", "backward()"),
        ("def end(self):\n    loss = f(self.kept)\n    accelerator.backward(loss)\n", "(loss)"),
        ("grads = torch.autograd.grad(sum(kept), weights)\n", "grad(sum(kept), weights)"),
        ("kept = kept - d(fake)\nkept.backward()\n", "kept.backward()"),
    ],
)
def test_what_a_backward_takes_later_is_gathered(tmp_path, source, code):
    assert asked(tmp_path, CRITIC + source, "local `kept` in main()").endswith(code)
    assert asked(tmp_path, CRITIC + source, "attribute `Rollout.kept`, from local `r`") != ""


@pytest.mark.parametrize(
    "source",
    [
        "kept += loss  # ran\nloss.backward()  # ran\nprint(kept)\n",
        "kept.append(loss)  # ran\nloss.backward()  # ran\nmean = sum(kept) / len(kept)\n",
        "kept = cell(x, kept)  # ran\nloss = f(kept)  # ran\nloss.backward()  # ran\n",
        "kept.append(loss)\nloss.backward()  # ran\nloss = sum(kept)\n",  # one name for both
        "class A:\n    kept = loss\n",
        "this is no Python\n",
    ],
)
def test_what_is_only_read_or_taken_on_each_step_is_not(tmp_path, source):
    assert asked(tmp_path, source, "local `kept` in main()") == ""


def test_tensors_and_what_nobody_holds_are_not(tmp_path):
    source = CRITIC + "sum(kept).backward()\n"

    assert asked(tmp_path, source, "local `kept` in main()", kind="tensor") == ""
    assert asked(tmp_path, source, "held outside Python") == ""
    assert asked(tmp_path, source, "global `kept`") == "sum(kept).backward()"


def test_a_sum_whose_backward_is_the_only_one_is_not(tmp_path):
    """As in rules/epoch-long-graph: the graph of the whole epoch is the leak."""
    source = "kept = kept + f(x)  # ran\nkept.backward()\n"

    assert asked(tmp_path, source, "local `kept` in main()") == ""
    assert asked(tmp_path, CRITIC + source, "local `kept` in main()") == "kept.backward()"


def test_a_backward_that_creates_a_graph_is_found_in_the_source(tmp_path):
    path = tmp_path / "penalty.py"
    path.write_text(
        "slope, = torch.autograd.grad(y, x, create_graph=True)\n"
        "first.backward(create_graph=False)\n"
        "second.backward()\n"
        "loss.backward(create_graph=True)\n"
    )

    assert [site.line for site in creating_graph([str(path)])] == [4]
