"""What a file does, read off its outline, and linked with the other files of its project."""

import ast
from textwrap import dedent

from leakcheck.projects import project_folder
from leakcheck.static.facts.extract import extract
from leakcheck.static.facts.link import Linked
from leakcheck.static.module import Module
from leakcheck.static.project import Project
from leakcheck.static.workspace import EVERY_FILE, Workspace


def facts_of(source):
    return extract(ast.parse(dedent(source)))


def roles(source):
    facts = facts_of(source)
    return [(use.name, use.role, use.how) for use in facts.uses if use.holder in ("self", "cls")]


def in_method(*lines):
    return "class C:\n  def m(self, x):\n" + "".join(f"    {line}\n" for line in lines)


def test_each_way_to_touch_an_attribute_has_its_role():
    assert roles(in_method("self.a = []")) == [("a", "bind", "")]
    assert roles(in_method("self.a.append(x)")) == [("a", "add", "append")]
    assert roles(in_method("self.a += x")) == [("a", "add", "")]
    assert roles(in_method("self.a[x] = 1")) == [("a", "slot", "[]")]
    assert roles(in_method("self.a[x][0].append(1)")) == [("a", "add", "append")]
    assert roles(in_method("self.a.pop()")) == [("a", "take", "pop")]
    assert roles(in_method("del self.a[x]")) == [("a", "take", "del[]")]
    assert roles(in_method("del self.a")) == [("a", "take", "del")]
    assert roles(in_method("self.a[x] += 1")) == [("a", "slot", "+=")]
    assert roles(in_method("self.a[:] = x")) == [("a", "take", "[]")]
    assert roles(in_method("if len(self.a) > 9: pass")) == [("a", "measure", "len")]
    assert roles(in_method("return self.a")) == [("a", "escape", "returned")]
    assert roles(in_method("f(self.a)")) == [("a", "escape", "argument")]
    assert roles(in_method("b = self.a")) == [("a", "escape", "bound")]
    assert roles(in_method("n = sum(self.a)")) == [("a", "read", "used")]
    assert roles(in_method("for b in self.a: pass")) == [("a", "read", "")]
    assert roles("class C:\n  a = {}\n") == [("a", "bind", "")]


def test_a_lambda_holds_what_it_reads_and_not_its_own_parameters():
    facts = facts_of("def f(m, x):\n  m.g = lambda x, *more, y=1: m(x, y, more)\n")

    assert [(use.value.kind, use.value.names) for use in facts.uses] == [("lambda", ("m",))]


def test_a_call_says_what_is_called_with_what_and_what_becomes_of_it():
    facts = facts_of(
        """
        import torch.nn.functional as F
        from torch import no_grad
        def run(model, data):
            with no_grad():
                for x in data:
                    y = model(x, scale=2)
                    F.relu(y)
            return y.cpu()
        """
    )

    told = [(c.spelled, c.qualified, c.fate, c.bound, c.loops, c.managers) for c in facts.calls]
    assert told == [
        ("no_grad", "torch.no_grad", "managed", "", 0, ()),
        ("model", "", "bound", "y", 1, ("torch.no_grad",)),
        ("F.relu", "torch.nn.functional.relu", "dropped", "", 1, ("torch.no_grad",)),
        ("y.cpu", "", "returned", "", 0, ()),
    ]
    assert facts.calls[1].argument("scale").text == "2"
    assert facts.calls[1].argument("input", 0).text == "x"
    assert facts.calls[3].receiver.text == "y"


def test_a_function_knows_its_class_what_is_around_it_and_what_it_reads():
    facts = facts_of(
        """
        class Net:
            def forward(self, x):
                def inner():
                    return self.w * x
                return inner()
        """
    )

    forward, inner = facts.functions
    assert (forward.name, forward.owner, forward.around) == ("forward", "Net", -1)
    assert (inner.name, inner.around) == ("inner", 0)
    assert inner.reads == {"self", "x"}
    assert facts.method_around(1) is forward
    assert facts.classes[0].methods == {"forward": 0}


def test_a_loop_is_endless_if_nothing_in_it_leaves_it():
    def endless(*lines):
        body = "".join(f"    {line}\n" for line in lines)
        return facts_of(f"def f(q):\n  while True:\n{body}").functions[0].endless

    assert endless("q.get()")
    assert endless("for x in q:", "  break")
    assert endless("def g(): return 1")
    assert not endless("if q.get() is None: break")
    assert not endless("return q.get()")
    assert not endless("if q.closed: raise ValueError")
    assert not facts_of("def f(q):\n  while q.open:\n    q.get()").functions[0].endless


def test_a_comprehension_is_a_loop_but_for_what_it_goes_over():
    facts = facts_of("[f(x) for x in g() if h(x)]\n{k(x): 1 for x in y}")

    assert [(call.spelled, call.loops) for call in facts.calls] == [
        ("g", 0), ("h", 1), ("f", 1), ("k", 1),
    ]  # fmt: skip


def test_a_slice_is_told_from_an_item_and_seen_through_methods():
    facts = facts_of("a = x[1:2]\nb = x[1]\nc = x[1:2].view(3).view(4)\nd = x[1].view(3)")

    values = [(bound.value.kind, bound.value.text, bound.value.names) for bound in facts.bindings]
    assert values == [
        ("slice", "x", ("x",)),
        ("item", "x", ("x",)),
        ("call", ".view", ("x",)),
        ("call", ".view", ()),
    ]


def test_what_stands_in_a_display_is_told_from_what_is_computed_in_it():
    (value,) = facts_of("def f(a, b):\n  return a, -b, [a]").functions[0].returns

    assert value.plain == ("a",)


def test_an_argument_is_told_by_the_parameter_it_is_given_as():
    (call,) = facts_of("f(1, a, size=b, **c)").calls

    assert call.given("a", ("size", "owner")) == "owner"
    assert call.given("b", ("size", "owner")) == "size"
    assert call.given("b", ("owner",)) == ""
    assert call.given("d", ("size", "owner")) == ""


def test_what_a_test_does_with_an_attribute_does_not_count_for_the_program():
    sources = {
        "a.py": "a.seen.append(1)",
        "tests/test_a.py": "a.seen.clear()",
        "tests/test_b.py": "a.seen.pop()",
        "b.py": "a.seen.remove(1)",
    }
    project = Project(sources)

    def effects(path):
        uses = Linked(path, project.facts(path), project).uses("seen")
        return sorted(use.how for _, use in uses)

    assert effects("a.py") == ["append", "remove"]
    assert effects("tests/test_a.py") == ["append", "clear", "pop", "remove"]


def test_another_class_speaks_of_its_own_attribute():
    text = dedent("""
        class Kept:
            def __init__(self): self.seen = {}
        class Kin(Kept):
            def drop(self): self.seen.pop(1)
        class Other:
            def __init__(self): self.seen = {}
            def drop(self): self.seen.clear()
        def outside(kept): kept.seen.popitem()
    """)
    project = Project({"a.py": text})
    linked = Linked("a.py", project.facts("a.py"), project)
    kept = linked.classes[0]

    takes = [use.how for _, use in linked.uses_of("seen", kept) if use.role == "take"]
    assert takes == ["pop", "popitem"]


def test_a_class_of_the_same_name_in_another_file_is_another_class():
    text = dedent("""
        class Kept:
            def __init__(self): self.seen = {}
            def drop(self): self.seen.pop(1)
    """)
    project = Project({"a.py": text, "b.py": text.replace("pop(1)", "clear()")})
    linked = Linked("a.py", project.facts("a.py"), project)

    uses = linked.uses_of("seen", linked.classes[0])
    assert [use.how for _, use in uses if use.role == "take"] == ["pop"]


def test_a_class_is_linked_with_its_bases_in_other_files():
    project = Project(
        {
            "base.py": "from torch import nn\nclass Base(nn.Module):\n    def close(self): pass\n",
            "net.py": "from base import Base\nclass Net(Base):\n    pass\n",
        }
    )
    linked = Linked("net.py", project.facts("net.py"), project)

    (net,) = linked.classes
    assert [each.facts.name for each in linked.lineage(net)] == ["Net", "Base"]
    assert linked.foreign_bases(net) == {"torch.nn.Module"}


def test_a_use_in_another_file_is_seen():
    sources = {"a.py": in_method("self.seen.append(x)"), "b.py": "def f(c):\n    c.seen.clear()\n"}
    module = Module(sources["a.py"], path="a.py", project=Project(sources))

    assert [use.role for _, use in module.facts.uses("seen")] == ["add", "take"]


def test_a_project_reaches_as_far_as_its_mark_or_its_package(tmp_path):
    inner = tmp_path / "repo" / "pkg" / "sub"
    inner.mkdir(parents=True)
    path = str(inner / "a.py")

    assert project_folder(path) is None
    (inner / "__init__.py").touch()
    assert project_folder(path) == str(inner.parent)
    (tmp_path / "repo" / "setup.py").touch()
    assert project_folder(path) == str(tmp_path / "repo")


def test_who_asked_all_of_the_project_depends_on_all_of_it(tmp_path):
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "a.py").write_text("a.seen.append(1)\n")
    (tmp_path / "b.py").write_text("b.seen.clear()\n")
    path = str(tmp_path / "a.py")

    before = Workspace()
    assert before.mentioning("seen", path) == (str(tmp_path / "b.py"),)
    (tmp_path / "b.py").write_text("pass\n")
    after = Workspace()
    assert after.mentioning("seen", path) == ()
    key = f"{tmp_path}{EVERY_FILE}"
    assert before.dependencies(path)[key] != after.dependencies(path)[key]


def test_a_repository_may_be_the_package_that_its_files_import(tmp_path, monkeypatch):
    root = tmp_path / "audio"
    (root / "utils").mkdir(parents=True)
    (root / "train.py").write_text("from audio.utils.measures import score\n")
    (root / "utils" / "measures.py").write_text("def score(x):\n    return x\n")
    monkeypatch.chdir(root)

    workspace = Workspace()

    assert workspace.locate("audio.utils.measures", "train.py") == "utils/measures.py"
    assert workspace.locate("other.utils.measures", "train.py") is None


def test_only_a_word_that_may_reach_an_attribute_counts_as_one():
    told = in_method('x["seen"] = 1', 'y = {"kept": 1}', 'if x == "eval": pass', 'f("cached")')
    assert facts_of(told).strings == {"cached"}
    assert facts_of(in_method("setattr(x, *y)", 'y = {"kept": 1}')).strings == {"kept"}
    assert facts_of(in_method('self.__dict__["seen"] = 1')).strings == {"seen"}
    assert facts_of(in_method('if "seen" in vars(self): pass')).strings == {"seen"}


def test_a_call_knows_what_its_result_is_unpacked_into():
    (call,) = facts_of("def f():\n  fig, (left, right) = plot()\n").calls
    assert (call.fate, call.bound, call.unpacked) == ("bound", "", ("fig", ""))


def test_a_file_that_is_checked_and_imported_has_one_set_of_facts():
    text = "class Meter:\n    pass\n"
    project = Project({"meters.py": text})

    assert Module(text, path="meters.py", project=project).facts.facts is project.facts("meters.py")
    edited = Module("x = 1\n", path="meters.py", project=project)
    assert edited.facts.facts is not project.facts("meters.py")
