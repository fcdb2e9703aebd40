"""Ways to write what reads, in a line that did not run, what an edit takes: each is seen."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")
from leakcheck.cure.sites import read
from leakcheck.cure.unreached_reads import Taken
from leakcheck.experiments import SourceSpan
from leakcheck.model import Holder

KEPT = Holder("global", "kept")
HEAD = """\
kept = []
for step in range(9):
    loss.backward()
    kept.append(loss)  # edited
"""


def taken(files: dict[str, str], holder: Holder) -> tuple[Taken, set[SourceSpan]]:
    """Return what is asked, with the lines that are marked as not reached."""
    sources, edited, unreached = {}, {}, set()
    for path, text in files.items():
        lines = list(enumerate(text.splitlines(), 1))
        sources[path] = read(text)
        edited[path] = {at for at, line in lines if "# edited" in line}
        unreached |= {SourceSpan(path, at, 0, at, 99) for at, line in lines if "# late" in line}
    return Taken(sources, holder, edited), unreached


def is_missed(text: str, *more: str, asks: str, holder: Holder = KEPT) -> bool:
    files = {"train.py": text, **{f"m{at}.py": each for at, each in enumerate(more)}}
    what, unreached = taken(files, holder)
    return getattr(what, f"missed_{asks}")(unreached) is not None


READS = {
    "a function of a table": "{'s': stacked}[how](kept)\ndef stacked(rows):\n"
    "    cat(rows)  # late\n",
    "another name of a function": "f = stacked\nf(kept)\ndef stacked(rows):\n"
    "    cat(rows)  # late\n",
    "a field of a dataclass": "Out(kept)\nclass Out:\n    rows: list\n    def all(self):\n"
    "        cat(self.rows)  # late\n",
    "an element of a dictionary": "rows = named['rows'] = kept\ncat(named['rows'])  # late\n",
    "an annotated name": "rows: list = kept\ncat(rows)  # late\n",
    "an object that goes over it": "buffer = Buffer(kept)\ncat(list(buffer))  # late\n"
    "class Buffer:\n    def __init__(self, rows):\n        self.rows = rows\n"
    "    def __iter__(self):\n        return iter(self.rows)\n",
    "a name in a walrus": "print((last := kept[-1]).shape)  # late\n",
    "a message of assert": "assert step, kept[-1]  # late\n",
    "a property": "Meter.rows = kept\nclass Meter:\n    @property\n    def mean(self):\n"
    "        return cat(self.rows)\nprint(meter.mean)  # late\n",
    "what is put into an argument": "def put(into, it):\n    into['it'] = it\nput(box, kept)\n"
    "cat(box['it'])  # late\n",
    "a heap": "heappush(best, kept)\ncat(best)  # late\n",
    "setattr": "setattr(box, 'it', kept)\ncat(box)  # late\n",
    "a method that ends in _": "mean.copy_(kept)\nprint(mean)  # late\n",
    "an attribute that is called": "later.work = bind(sum_of, kept)\nlater.work()  # late\n",
    "a method of the same name": "cat(box.kept)  # late\n",
    "a dataclass by keyword": "Out(rows=kept)\nclass Out:\n    rows: list\n"
    "def all(out):\n    cat(out.rows)  # late\n",
}


@pytest.mark.parametrize("way", READS)
def test_a_read_is_seen_however_it_is_written(way):
    assert is_missed(HEAD + READS[way], asks="value")
    assert not is_missed(HEAD + READS[way].replace("kept", "others"), asks="value")


LEARNS = {
    "a method of an object that holds it": "trainer = Trainer(kept)\n"
    "trainer.loss(x).backward()  # late\nclass Trainer:\n"
    "    def __init__(self, kept):\n        self.old = kept\n"
    "    def loss(self, x):\n        return crit(x) + sum(self.old)\n",
    "a method of it": "kept.pop(i).backward()  # late\n",
    "an argument of its method": "kept[i].mul(w).backward()  # late\n",
    "an argument of backward": "kept[0].backward(gradient)  # late\n",
    "a library that goes back": "accelerator.backward(kept[0] / n)  # late\n",
}


@pytest.mark.parametrize("way", LEARNS)
def test_a_loss_is_seen_however_it_is_written(way):
    assert is_missed(HEAD + LEARNS[way], asks="graph")


def test_a_name_that_was_learned_from_may_be_bound_anew():
    text = f"{HEAD}loss = {{value}}\nloss.backward()  # late\n"

    assert is_missed(text.format(value="sum(kept) / n"), asks="graph")
    assert not is_missed(text.format(value="crit(x)"), asks="graph")


@pytest.mark.parametrize("called", ["logs", "logs('step')"])
def test_what_a_decorated_function_returns_its_wrapper_has(called):
    factory = "def logs(name):\n    def {0}(run):\n        def inner(*args):\n"
    plain = "def logs(run):\n    if True:\n        def inner(*args):\n"
    text = (
        f"{plain if called == 'logs' else factory.format('wraps')}"
        "            out = run(*args)\n"
        "            out.backward()  # late\n"
        f"@{called}\n"
        "def total(x):\n"
        "    return sum(kept)\n"
        f"{HEAD}    total(x)\n"
    )

    assert is_missed(text, asks="graph")
    assert not is_missed(text.replace("sum(kept)", "crit(x)"), asks="graph")


def test_a_property_of_a_meter_is_no_function_that_models_may_call():
    text = (
        "class Meter:\n"
        "    @property\n"
        "    def mean(self):\n"
        "        return self.kept / self.n\n"
        "for x in data:\n"
        "    loss = net(x).mean()\n"
        "    if late:\n"
        "        loss = loss + sum(p.sum() for p in net.parameters())  # late\n"
        "    loss.backward()\n"
        "    meter.kept += loss  # edited\n"
        "print(meter.mean)\n"
    )

    assert not is_missed(text, asks="graph", holder=Holder("attribute", "kept", "Meter"))


def test_a_loss_of_something_else_needs_no_graph():
    for code in ("others[0].backward()  # late", "(sum(others) / len(others)).backward()  # late"):
        assert not is_missed(f"{HEAD}others = fresh(x)\n{code}\n", asks="graph")


@pytest.mark.parametrize(
    "other",
    [
        "def report():\n    from train import kept\n    cat(kept)  # late\n",
        "def report():\n    from train import kept as rows\n    cat(rows)  # late\n",
        "import train\ncat(train.kept)  # late\n",
        "from train import *\ncat(kept)  # late\n",
    ],
)
def test_another_file_reads_it_by_an_import(other):
    assert is_missed(HEAD, other, asks="value")
    assert not is_missed(HEAD, other.replace("kept", "others"), asks="value")


def test_a_name_that_is_imported_may_be_bound_anew():
    text = HEAD.replace("kept", "queue")

    for held in ("queue", "self.queue"):
        code = text.replace("queue", held) + f"import queue\ncat({held})  # late\n"
        kind = "attribute" if "." in held else "global"
        assert is_missed(code, asks="value", holder=Holder(kind, "queue", "M"))


def test_the_holder_may_be_the_local_of_a_caller():
    text = (
        "def train(rows):\n"
        "    rows.append(loss)  # edited\n"
        "def main():\n"
        "    kept = []\n"
        "    train(kept)\n"
        "    cat(kept)  # late\n"
    )

    assert is_missed(text, asks="value", holder=Holder("local", "kept", function="main"))


def test_a_decorator_that_makes_no_graph_takes_that_of_what_the_function_returns():
    text = (
        "@torch.no_grad()  # edited\n"
        "def penalty(net):\n"
        "    return net.weight.sum()\n"
        "extra = penalty(net)\n"
        "extra.backward()  # late\n"
    )

    assert is_missed(text, asks="graph", holder=Holder())


def test_a_function_that_never_ran_may_go_through_the_graph_again():
    text = (
        "loss.backward()  # edited\n"
        "def penalty(loss):\n"
        "    x = loss + 1  # late\n"
        "    x.backward()  # late\n"
        "if late:\n"
        "    penalty(loss)  # late\n"
    )

    assert is_missed(text, asks="again")
    assert not is_missed(text.replace("    penalty(loss)", "    penalty(other)"), asks="again")


@pytest.mark.parametrize(
    "beside",
    [
        "logger.info(f'{kept}')\ndef evaluate(net):\n    net(x)  # late\n",
        "self.sum = kept\nprint(x.sum())  # late\n",
        "pbar.set_description(str(kept))\nprint(net(x))  # late\n",
    ],
)
def test_what_is_only_logged_is_in_no_model_and_no_method_of_a_tensor(beside):
    net = "class Net(Module):\n    def forward(self, x):\n        return x\n"

    assert not is_missed(HEAD + net + beside, asks="value")


@pytest.mark.parametrize(
    "code",
    ["print(sum(kept).item())", "print((sum(kept) / 9).cpu())", "print(max(kept).item())",
     "x = abs(kept).sqrt()", "print(float(sum(kept).mean()))", "print(kept.isfinite())"],
)  # fmt: skip
def test_what_is_asked_of_a_sum_is_asked_of_a_tensor(code):
    assert is_missed(f"{HEAD}{code}  # late\n", asks="tensor")


@pytest.mark.parametrize(
    "code",
    ["assert kept[0] > 3", "json.dump({'loss': kept}, f)", "writer.add_scalars('a', {'b': kept})",
     "print(math.exp(kept[0]), np.mean(kept))", "best = min(best, kept[0])", "d = dict(a=kept)"],
)  # fmt: skip
def test_what_is_done_with_numbers_too_needs_no_tensor(code):
    assert not is_missed(f"{HEAD}{code}  # late\n", asks="tensor")


def test_a_function_of_torch_takes_tensors_whatever_it_is_called_here():
    imports = "import torch\nimport torch as th\nfrom torch import mean, isnan as is_nan\n"

    for code in ("th.isfinite(kept[0])", "mean(kept[0])", "torch.abs(kept[0])", "is_nan(kept[0])"):
        assert is_missed(f"{imports}{HEAD}print({code})  # late\n", asks="tensor")
    assert not is_missed(f"{imports}{HEAD}print(abs(kept[0]))  # late\n", asks="tensor")
