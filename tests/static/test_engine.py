import pytest

from leakcheck.errors import RuleError, SourceError
from leakcheck.model import Location
from leakcheck.static.engine import check_source, concerned_rules
from leakcheck.static.project import Project
from leakcheck.static.rule import Rule


class NamesSGD(Rule):
    slug = "names-sgd"
    code = "LK998"
    summary = "SGD is named"
    help = "name another"

    def check(self, module):
        for call in module.calls_of("torch.optim.SGD"):
            yield self.hit(call, "SGD")


class Crashes(NamesSGD):
    slug = "crashes"
    code = "LK997"

    def check(self, module):
        raise ZeroDivisionError("oh")
        yield


def lines(source: str) -> list[int]:
    return [f.location.line for f in check_source(source, "a.py", [NamesSGD])]


def test_a_finding_says_where_what_and_why():
    source = "import torch\n\nopt = torch.optim.SGD([])  # it\n"

    (finding,) = check_source(source, "a.py", [NamesSGD])

    assert finding.location == Location("a.py", 3, 7, 3, 26)
    assert (finding.rule, finding.code) == ("names-sgd", "LK998")
    assert finding.context == "opt = torch.optim.SGD([])  # it"
    assert finding.help == "name another"


def test_columns_count_characters_not_bytes():
    (finding,) = check_source("import torch\né = torch.optim.SGD(1)\n", "a.py", [NamesSGD])

    assert finding.location.column == 5


def test_names_are_resolved_through_imports_and_aliases():
    assert lines("import torch as th\nth.optim.SGD()\n") == [2]
    assert lines("from torch import optim\noptim.SGD()\n") == [2]
    assert lines("from torch.optim import SGD as S\nS()\n") == [2]
    assert lines("import torch\nfrom mine import SGD\nSGD()\n") == []
    assert lines("from torch.optim import SGD\nclass SGD: pass\nSGD()\n") == []


def test_a_file_without_the_rules_words_is_not_parsed():
    assert check_source("this is not python at all (", "a.py", [NamesSGD]) == ()


@pytest.mark.parametrize(
    "source",
    ["torch (", "torch = 1\n\tx\n  y", "torch\x00", "def torch(:\n", "if torch:\n"],
)
def test_broken_source_is_one_line(source):
    with pytest.raises(SourceError) as caught:
        check_source(source, "a.py", [NamesSGD])

    assert "\n" not in str(caught.value)
    assert str(caught.value)


@pytest.mark.parametrize("depth", [1_000, 20_000])
@pytest.mark.parametrize(
    ("start", "end"),
    [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("", "+1"), ("", ".a"), ("", "()"),
     ("1 if x else ", "")],
    ids=["parens", "lists", "minus", "not", "plus", "attributes", "calls", "ternaries"],
)  # fmt: skip
def test_deep_nesting_neither_crashes_nor_hangs(start, end, depth):
    with pytest.raises(SourceError):
        check_source(f"{start * depth}torch{end * depth}\n", "a.py", [NamesSGD])


def test_many_elif_branches_are_read():
    source = "import torch\nif x:\n    pass\n" + "elif y:\n    torch.optim.SGD()\n" * 300

    assert len(check_source(source, "a.py", [NamesSGD])) == 300


def test_a_rule_that_crashes_is_named():
    with pytest.raises(RuleError, match=r"a\.py: rule crashes failed: ZeroDivisionError: oh"):
        check_source("import torch\n", "a.py", [Crashes])


def test_rules_are_passed_over_by_their_words():
    assert concerned_rules("import numpy\n", [NamesSGD]) == []
    assert concerned_rules("import torch\n", [NamesSGD]) == [NamesSGD]


def test_empty_and_comment_only_files_are_clean():
    assert check_source("", "a.py") == ()
    assert check_source("# torch backward\n", "a.py") == ()


class NamesExcept(NamesSGD):
    words = ("except",)


class NamesExceptNearTorch(NamesExcept):
    needs_torch = True


def test_a_file_without_torch_is_passed_over_by_the_rules_that_need_it():
    source = "try:\n    import json\nexcept ImportError:\n    pass\n"
    assert concerned_rules(source, [NamesExcept, NamesExceptNearTorch]) == [NamesExcept]


def test_a_file_that_imports_one_that_names_torch_is_checked():
    project = Project({"meters.py": "import torch\n", "train.py": "import meters  # except\n"})
    source = "import meters  # except\n"
    assert concerned_rules(source, [NamesExceptNearTorch], "train.py", project) == [
        NamesExceptNearTorch
    ]


@pytest.mark.parametrize(
    "line", ["import tensorflow as tf", "from keras import layers", "x = tf.ones(3)"]
)
def test_a_file_that_computes_with_another_library_has_no_graphs_of_torch(line):
    project = Project({"kit.py": "import torch\n"})
    source = f"import kit  # except\n{line}\n"

    assert concerned_rules(source, [NamesExceptNearTorch], "train.py", project) == []
    assert concerned_rules(f"{source}import torch\n", [NamesExceptNearTorch], "a.py", project) == [
        NamesExceptNearTorch
    ]
