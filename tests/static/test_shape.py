"""What kind of thing a class, a loop or a name is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from leakcheck.static import shape, syntax
from leakcheck.static.module import Module
from leakcheck.static.queries import datasets


def module(source: str) -> Module:
    text = textwrap.dedent(source)
    return Module(text, syntax.parse(text))


def expression(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text)


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("loader", True),
        ("self.train_dataloader", True),
        ("val_dl", True),
        ("dl", True),
        ("iter(loader)", True),
        ("enumerate(tqdm(loader))", True),
        ("zip(names, test_dl)", True),
        ("DataLoader(x)", True),
        ("accelerator.prepare(dl)", True),
        ("trainer.val_dataloader()", True),
        ("names", False),
        ("handle", False),
        ("middle", False),
        ("(1, 2)", False),
        ("range(3)", False),
    ],
)
def test_a_loader_is_known_by_its_making_or_its_name(text, like):
    tree = module("from torch.utils.data import DataLoader\n")

    assert shape.loader_like(tree, expression(text), None) is like


def test_a_local_name_bound_to_a_loader_is_one():
    tree = module("""
        from torch.utils.data import DataLoader
        def f(data):
            source = DataLoader(data)
            use(source)
    """)
    argument = next(c for c in tree.calls if shape.last_name(c) == "use").args[0].value

    assert shape.loader_like(tree, argument, tree.functions[0])


@pytest.mark.parametrize(
    ("body", "receiver", "origin"),
    [
        ("pass", "model.layer[0]", "model"),
        ("x = model.layer", "x", "model"),
        ("for _, m in model.named_modules(): pass", "m", "model"),
        ("for i, m in enumerate(self.layers): pass", "m", "self.layers"),
        ("layers = list(model.children())", "layers[0]", "model"),
        ("pass", "self.model.encoder", "self.model"),
        ("x = make()", "x", ""),
        ("model = wrap(model)", "model", "model"),
        ("pass", "unknown", ""),
    ],
)
def test_origins_are_followed_through_local_names(body, receiver, origin):
    tree = module(f"def f(self, model):\n    {body}\n")

    assert shape.origin(tree, expression(receiver), tree.functions[0]) == origin


def test_own_nodes_stay_out_of_nested_functions():
    tree = module("""
        def f():
            a()
            def g():
                b()
            h = lambda: c()
    """)
    called = [shape.last_name(n) for n in shape.own_nodes(tree.functions[0]) if type(n) is cst.Call]

    assert called == ["a"]


def test_a_loop_trains_when_it_runs_a_backward_pass_or_an_optimizer():
    tree = module("""
        for a in x:
            loss.backward()
        for b in x:
            optimizer.step()
        for c in x:
            scheduler.step()
        for d in x:
            for e in x:
                loss.backward()
    """)
    loops = tree.nodes(cst.For)

    assert [shape.trains(loop.body) for loop in loops] == [True, True, False, True, True]


def test_gradients_are_off_under_a_block_or_a_decorator():
    tree = module("""
        import torch
        from torch import inference_mode
        with torch.no_grad(), open(p):
            a()
        @inference_mode()
        def f():
            b()
        @torch.no_grad
        def g():
            c()
        with no_grad():
            d()
    """)
    off = {shape.last_name(call): shape.gradients_off(tree, call) for call in tree.calls}

    assert {name: off[name] for name in "abcd"} == {"a": True, "b": True, "c": True, "d": False}


def test_what_torch_gives_without_tensors_does_not_weigh():
    tree = module(
        "import torch\n"
        "class Profiler:\n"
        "    def start(self):\n"
        "        self.inner = torch.profiler.profile()\n"
        "        self.stream = torch.cuda.Stream()\n"
        "class Holder:\n"
        "    def start(self):\n"
        "        self.inner = torch.zeros(3)\n"
    )

    assert [shape.holds_tensors(tree, c) for c in tree.classes] == [False, True]


def test_a_class_holds_tensors_as_a_module_or_by_what_it_stores():
    tree = module("""
        import torch
        from torch import nn
        class A(nn.Module): pass
        class B(A): pass
        class C:
            def __init__(self):
                self.x = torch.zeros(3)
        class D:
            def __init__(self, model):
                self.model = model
        class E:
            def __init__(self, size):
                self.size = size
    """)

    assert [shape.holds_tensors(tree, c) for c in tree.classes] == [True, True, True, True, False]


def test_a_data_set_has_a_data_set_base_or_its_two_methods_and_no_other():
    tree = module("""
        from torch.utils.data import Dataset
        class A(Dataset): pass
        class B(SomeVideoDataset): pass
        class C:
            def __len__(self): return 1
            def __getitem__(self, i): return i
        class D(Mapping):
            def __len__(self): return 1
            def __getitem__(self, i): return i
        class E:
            def __len__(self): return 1
    """)

    found = [datasets.is_dataset(tree, c) for c in tree.classes]

    assert found == [True, True, True, False, False]


def test_set_up_reaches_what_the_constructor_calls_and_what_subclasses_do():
    tree = module("""
        class Base(Dataset):
            def __init__(self):
                self._a()
            def _a(self): self._b()
            def _b(self): pass
            def _c(self): pass
            def __getitem__(self, i): self._d()
            def _d(self): pass
        class Derived(Base):
            def __init__(self):
                self._c()
    """)

    found = [m.name.value for m in datasets.setup_methods(tree, tree.classes[0])]

    assert sorted(found) == ["__init__", "_a", "_b", "_c"]
