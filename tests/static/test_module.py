import gc
import textwrap

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.module import Module
from leakcheck.static.project import Project


def parsed(source: str) -> Module:
    source = textwrap.dedent(source)
    return Module(source, syntax.parse(source), "a.py")


def test_every_node_is_indexed_once_in_source_order():
    module = parsed("""
        class A:
            def f(self):
                for x in g(h()):
                    k(x)
        l()
    """)

    assert [module.code(call.func) for call in module.calls] == ["g", "h", "k", "l"]
    assert len({id(node) for node in syntax.walk(module.tree)}) == len(
        list(syntax.walk(module.tree))
    )


def test_the_loop_of_a_node_runs_it_at_each_turn():
    module = parsed("""
        for x in a():
            b()
            def f():
                c()
        else:
            d()
        while e():
            g()
    """)
    inside = {module.code(c.func): module.loop_of(c) is not None for c in module.calls}

    assert inside == {"a": False, "b": True, "c": False, "d": False, "e": True, "g": True}


def test_bases_are_followed_within_the_module():
    module = parsed("""
        from torch import nn
        class A(nn.Module): pass
        class B(A): pass
    """)

    assert module.bases(module.classes[1]) == ("torch.nn.Module",)


def test_literals_are_told_from_expressions():
    call = parsed("f(1, 'a', True, None, x, k=2)").calls[0]

    constants = [syntax.constant(arg.value) for arg in call.args]

    assert constants == [1, "a", True, None, ..., 2]
    assert syntax.argument(call, "k").value.value == "2"
    assert syntax.argument(call, "second", 1).value.evaluated_value == "a"
    assert syntax.argument(call, "late", 5) is None


def test_a_definition_is_pointed_at_by_its_name_and_a_loop_by_its_header():
    module = parsed("def f():\n    pass\nfor x in y:\n    pass\n")
    function, loop = module.functions[0], module.loops[0]

    at = [module.location(node) for node in (function, loop)]

    assert [(place.line, place.column, place.end_line) for place in at] == [(1, 5, 1), (3, 1, 3)]


def test_imports_of_a_project_lead_to_its_files():
    project = Project(
        {"src/pkg/__init__.py": "", "src/pkg/a.py": "x = 1", "src/pkg/sub/b.py": "", "c.py": "(("}
    )

    def found(name: str, importer: str) -> str | None:
        module = project.find(name, importer)
        return module.path if module else None

    assert found("pkg.a", "src/pkg/sub/b.py") == "src/pkg/a.py"
    assert found("..a", "src/pkg/sub/b.py") == "src/pkg/a.py"
    assert found(".", "src/pkg/a.py") == "src/pkg/__init__.py"
    assert found("pkg.missing", "src/pkg/a.py") is None
    assert found("c", "src/pkg/a.py") is None


def test_match_statements_and_new_syntax_are_walked():
    module = parsed("""
        match x:
            case [a, *rest] if f(a):
                g(rest)
    """)

    assert [module.code(call) for call in module.nodes(cst.Call)] == ["f(a)", "g(rest)"]


def test_an_attribute_that_is_given_an_import_stands_for_it():
    source = """
import matplotlib.pyplot as plt
from .logs import board

class Logger:
    def __init__(self, net):
        self.plt, self.board, self.net = plt, board, net
        self.mixed = plt

    def log(self):
        self.mixed = None
        self.mixed = self.net
        self.plt.figure(), self.board.log(), self.net.run(), self.mixed.figure()
"""
    module = Module(source, syntax.parse(source))
    called = [module.qualified(call.func) for call in module.calls]
    assert called == ["matplotlib.pyplot.figure", "", "", ""]


def test_a_literal_and_the_classes_of_a_file_leave_nothing_to_the_collector():
    module = Module("class Meter:\n    limit = 12345\n")
    gc.collect()
    gc.disable()
    try:
        assert [syntax.constant(node) for node in module.nodes(cst.Integer)] == [12345]
        assert [each.facts.name for each in module.facts.classes] == ["Meter"]
        module.release()
        del module

        assert gc.collect() == 0
    finally:
        gc.enable()
