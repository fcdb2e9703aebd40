"""Who registers which hook where, and what the hook keeps."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from leakcheck.static import registry, syntax
from leakcheck.static.engine import check_source
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks


def module(source: str) -> Module:
    text = textwrap.dedent(source)
    return Module(text, syntax.parse(text))


def registration(source: str) -> tuple[Module, cst.Call]:
    tree = module(source)
    return tree, next(hooks.registrations(tree))


@pytest.mark.parametrize(
    ("statement", "dropped"),
    [
        ("m.register_forward_hook(h)", True),
        ("x = m.register_forward_hook(h)", True),
        ("x = m.register_forward_hook(h); x.remove()", False),
        ("return m.register_forward_hook(h)", False),
        ("hs.append(m.register_forward_hook(h))", False),
        ("self.x = m.register_forward_hook(h)", True),
        ("self.x = m.register_forward_hook(h); self.x.remove()", False),
        ("self.hs.append(m.register_forward_hook(h))", True),
        ("self.hs.append(m.register_forward_hook(h)); drop(self.hs)", False),
    ],
)
def test_a_handle_is_dropped_when_nothing_can_remove_it(statement, dropped):
    tree, call = registration(f"def f(self, m, h, hs):\n    {statement}\n")

    assert hooks.handle_dropped(tree, call) is dropped


@pytest.mark.parametrize(
    ("base", "receiver", "foreign"),
    [
        ("object", "model", True),
        ("object", "self.model.layer", True),
        ("object", "self.own", False),
        ("nn.Module", "model", False),
    ],
)
def test_a_module_is_foreign_to_a_plain_class_that_was_handed_it(base, receiver, foreign):
    tree, call = registration(f"""
        from torch import nn
        class A({base}):
            def __init__(self, model):
                self.model = model
                self.own = nn.Linear(2, 2)
                {receiver}.register_forward_hook(self.save)
            def save(self, module, inputs, output): pass
    """)

    assert hooks.foreign(tree, call) is foreign


def test_one_hook_that_holds_nothing_is_not_worth_a_line_but_one_on_each_layer_is():
    source = """
        class A:
            def __init__(self, model):
                {}model.register_forward_hook(print)
    """
    one = registration(source.format(""))
    each = registration(source.format("for model in model.modules(): "))

    assert not hooks.foreign(*one)
    assert hooks.foreign(*each)


def test_a_function_that_sets_up_hooks_owns_them():
    tree, call = registration("def f(model):\n    model.register_forward_hook(print)\n")

    assert not hooks.foreign(tree, call)
    assert not hooks.runs_what_it_hooks(tree, call)


def test_a_function_that_hooks_and_runs_a_model_does_so_at_each_call():
    tree, call = registration("""
        def f(model, x):
            model.layer.register_forward_hook(print)
            return model(x)
    """)

    assert hooks.runs_what_it_hooks(tree, call)


@pytest.mark.parametrize(
    ("hook", "holds"),
    [
        ("self.save", True),
        ("self.static", False),
        ("self.data", False),
        ("lambda g: self.save(g)", True),
        ("lambda g: g", False),
        ("partial(self.save, 1)", True),
        ("partial(f, self)", True),
        ("partial(f, self.data)", False),
        ("self.make(1)", True),
        ("weak_method(self.save)", False),
        ("nested", True),
        ("free", False),
    ],
)
def test_a_hook_holds_self_when_it_is_bound_or_closes_over_it(hook, holds):
    tree = module(f"""
        class A:
            def run(self, x):
                def nested(g):
                    return self.save(g)
                def free(g):
                    return g
                x.register_hook({hook})
            def save(self, g): pass
            @staticmethod
            def static(g): pass
            def make(self, n):
                def hook(g):
                    self.n = n
                return hook
    """)
    call = next(hooks.registrations(tree, "tensor-hooks"))

    assert hooks.holds_self(tree, hooks.hook_argument(call), call) is holds


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("self.x.append(output)", ["x"]),
        ("self.x.append(output.detach().cpu())", ["x"]),
        ("self.x.append(output.mean().item())", []),
        ("self.x.append(output.shape)", []),
        ("y = output * 2; self.x.append(y)", ["x"]),
        ("module.x = inputs[0]", ["x"]),
        ("self.count = len(output)", []),
        ("self.calls += 1", []),
        ("self.x.append(module)", []),
    ],
)
def test_a_hook_keeps_what_is_made_of_its_inputs_and_outputs(statement, kept):
    tree = module(f"""
        class A:
            def __init__(self, m):
                self.h = m.register_forward_hook(self.hook)
            def hook(self, module, inputs, output):
                {statement}
    """)
    (hook,) = hooks.hook_functions(tree)

    assert [store.word for store in hooks.stores(tree, hook)] == kept


def test_entries_that_only_a_backward_hook_takes_out_are_told_apart():
    source = """
        class A:
            def __init__(self, m):
                m.register_forward_hook(self.save)
                m.register_full_backward_hook(self.use)
            def save(self, module, inputs, output):
                self.kept.append(output)
            def use(self, module, before, after):
                self.kept.pop()
    """

    assert hooks.dropped_only_by_backward(module(source), "kept")
    assert not hooks.dropped_only_by_backward(
        module(source + "    def reset(self):\n                self.kept.clear()\n"), "kept"
    )


TRAINED = """
import torch

def train(model, loader, opt):
    feats = {}
    def save(name):
        def keep(module, inputs, output):
            feats.setdefault(name, []).append(output)
        return keep
    handles = [m.register_forward_hook(save(n)) for n, m in model.named_children()]
    for x, y in loader:
        loss = model(x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(len(feats))
"""


def kept_graphs(source: str) -> list[str]:
    rule = [rule for rule in registry.default_rules() if rule.slug == "hook-keeps-graph"]
    return [f.context.strip() for f in check_source(source, "a.py", rule)]


def test_a_hook_that_fills_a_list_of_the_training_function_keeps_every_forward():
    assert kept_graphs(TRAINED) == ["feats.setdefault(name, []).append(output)"]

    lambdas = TRAINED.replace("save(n)", "lambda m, i, o: feats[n].append(o)")
    assert kept_graphs(lambdas)[-1].startswith("handles = [m.register_forward_hook(lambda")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("append(output)", "append(output.detach())"),
        ("append(output)", "append(output.mean().item())"),
        ("append(output)", "append(len(output))"),
        ("        opt.step()", "        feats.clear()"),
        ("        opt.step()", "        feats = {}"),
        ("        opt.step()", "        feats.pop('head')"),
        ("        opt.step()", "        for h in handles: h.remove()"),
        ("        loss.backward()", "        print(loss.item())"),
        ("    for x, y in loader:", "    x = loader\n    if x:"),
        ("def train(", "@torch.no_grad()\ndef train("),
        ("    feats = {}", "    feats = model.feats"),
    ],
)
def test_a_hook_whose_list_is_emptied_or_holds_no_graph_does_not(old, new):
    assert old in TRAINED
    assert kept_graphs(TRAINED.replace(old, new)) == []
