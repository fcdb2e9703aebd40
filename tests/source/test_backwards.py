"""A graph that is gathered for a backward yet to come is not told before that has run."""

from __future__ import annotations

import pytest

from leakcheck.model import Place, Suspect
from leakcheck.source.backwards import backward_at, creating_graph
from leakcheck.source.tree import File
from tests.holders import held_by

CRITIC = "critic_loss.backward()  # ran\n"


def asked(source: str, holder: str) -> str:
    """Return the backward that is waited for."""
    numbered = enumerate(source.splitlines(), 1)
    visits = {("program.py", number): 8 for number, line in numbered if "# ran" in line}
    places = (Place("program.py", 1, ""),)
    suspect = Suspect("graph", "", holder=held_by(holder), locations=places)
    place = backward_at(suspect, visits, lambda path: File(path, source))
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
def test_what_a_backward_takes_later_is_gathered(source, code):
    assert asked(CRITIC + source, "local `kept` in main()").endswith(code)
    assert asked(CRITIC + source, "attribute `Rollout.kept`, from local `r`") != ""


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
def test_what_is_only_read_or_taken_on_each_step_is_not(source):
    assert asked(source, "local `kept` in main()") == ""


def test_what_nobody_holds_is_not():
    source = CRITIC + "sum(kept).backward()\n"

    assert asked(source, "held outside Python") == ""
    assert asked(source, "global `kept`") == "sum(kept).backward()"


def test_a_sum_whose_backward_is_the_only_one_is_not():
    """As in rules/epoch-long-graph: the graph of the whole epoch is the leak."""
    source = "kept = kept + f(x)  # ran\nkept.backward()\n"

    assert asked(source, "local `kept` in main()") == ""
    assert asked(CRITIC + source, "local `kept` in main()") == "kept.backward()"


def test_a_backward_that_creates_a_graph_is_found_in_the_source():
    file = File(
        "penalty.py",
        "slope, = torch.autograd.grad(y, x, create_graph=True)\n"
        "first.backward(create_graph=False)\n"
        "second.backward()\n"
        "loss.backward(create_graph=True)\n",
    )

    assert creating_graph([file]) == [("penalty.py", 4)]
