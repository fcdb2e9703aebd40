"""What a file does, read off its outline, and linked with the other files of its project."""

import ast
from textwrap import dedent

from leakcheck.static.facts.extract import extract
from leakcheck.static.facts.link import Linked
from leakcheck.static.module import Module
from leakcheck.static.project import Project
from leakcheck.static.workspace import EVERY_FILE, Workspace, project_folder


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
    assert roles(in_method("del self.a[x]")) == [("a", "take", "del")]
    assert roles(in_method("self.a[:] = x")) == [("a", "take", "[]")]
    assert roles(in_method("if len(self.a) > 9: pass")) == [("a", "measure", "len")]
    assert roles(in_method("return self.a")) == [("a", "escape", "returned")]
    assert roles(in_method("f(self.a)")) == [("a", "escape", "argument")]
    assert roles(in_method("b = self.a")) == [("a", "escape", "bound")]
    assert roles(in_method("n = sum(self.a)")) == [("a", "read", "used")]
    assert roles(in_method("for b in self.a: pass")) == [("a", "read", "")]
    assert roles("class C:\n  a = {}\n") == [("a", "bind", "")]


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
