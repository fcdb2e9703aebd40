from __future__ import annotations

import functools
import gc
import subprocess
import sys
import threading
import weakref
from contextvars import ContextVar
from types import ModuleType

import pytest
import torch
from torch import nn

import leakcheck

pytest_plugins = ["pytester"]
KEPT: list[object]  # of the module `registry`, which each test has anew
CURRENT: ContextVar[object] = ContextVar("current")


class Engine:
    """What may be held; whoever calls one of its methods is found out."""

    def __eq__(self, other):
        raise RuntimeError("__eq__ was called")

    def __hash__(self):
        raise RuntimeError("__hash__ was called")

    def __repr__(self):
        raise RuntimeError("__repr__ was called")

    def __getattribute__(self, name):
        raise RuntimeError(f"{name} was asked for")


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    """Make a module that the heap knows, off which everything collected is taken."""
    global KEPT
    registry = ModuleType("registry")
    registry.KEPT = KEPT = []
    monkeypatch.setitem(sys.modules, "registry", registry)
    yield
    KEPT.clear()


def told(*objects, **options) -> str:
    """Return what is said of objects that only others hold now."""
    expectation = leakcheck.expect_released(*objects, **options)
    del objects
    with pytest.raises(leakcheck.NotReleasedError) as error:
        expectation.check()
    return str(error.value)


def test_what_is_let_go_of_in_the_block_is_released():
    model = nn.Linear(3, 3)

    with leakcheck.expect_released(model):
        del model


def test_a_name_that_is_not_deleted_is_told_with_its_function():
    model = nn.Linear(3, 3)

    with pytest.raises(AssertionError) as error, leakcheck.expect_released(model):
        pass

    assert str(error.value) == (
        "1 object that should be gone is alive\n\n"
        "Linear, kept by local `model` in "
        "test_a_name_that_is_not_deleted_is_told_with_its_function()\n"
        "  local `model` in test_a_name_that_is_not_deleted_is_told_with_its_function()\n"
        "  fix: `del model` before the end of the block, or end the function that names it"
    )


def test_a_global_list_is_told():
    KEPT.append(nn.Sequential(nn.Linear(3, 3)))

    text = told(KEPT[0])

    assert text == (
        "1 object that should be gone is alive\n\n"
        "Sequential, kept by global `registry.KEPT`\n"
        "  global `registry.KEPT`\n"
        "  ╰→ [x]: Sequential\n"
        "  fix: remove it there when it is done with, or keep a weak reference"
    )


def test_an_optimizer_keeps_the_parameters_of_a_model_that_is_gone():
    model = nn.Linear(3, 3)
    KEPT.append(torch.optim.SGD(model.parameters(), lr=0.1))

    with pytest.raises(AssertionError) as error, leakcheck.expect_released(model):
        del model

    assert str(error.value) == (
        "2 objects that should be gone are alive\n\n"
        "Parameter (3x3) float32 and 1 more the same way, kept by attribute "
        "`SGD.param_groups`, from global `registry.KEPT`\n"
        "  global `registry.KEPT`\n"
        "  ├─ [x]: SGD\n"
        "  ├─ .param_groups: list\n"
        "  ├─ [x]: dict\n"
        '  ├─ ["params"]: list\n'
        "  ╰→ [x]: Parameter (3x3) float32\n"
        "  fix: remove it there when it is done with, or keep a weak reference"
    )


def test_an_optimizer_that_goes_too_keeps_nothing():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with leakcheck.expect_released(model, optimizer):
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        del model, optimizer


def hooked(remove: bool) -> weakref.ref[object]:
    engine = nn.Identity()
    output = (torch.ones(3, requires_grad=True) * 2).exp()
    handle = output.grad_fn.register_hook(functools.partial(clear_cache, engine))
    engine.output = output
    if remove:
        handle.remove()
    return weakref.ref(engine)


def clear_cache(engine, *gradients):
    return None


def test_a_hook_on_a_node_of_the_graph_is_told_by_its_function():
    engine = hooked(remove=False)
    line = clear_cache.__code__.co_firstlineno

    text = told(engine())

    assert text.startswith(
        "1 object that should be gone is alive\n\n"
        f"Identity, kept by the hook clear_cache() at {_shown()}:{line}, on ExpBackward0\n"
        "  hooks of a Node of the autograd graph\n"
        "  ├─ [x]: partial\n"
        "  ╰→ argument of a partial: Identity\n"
        "  fix: remove the hook with the handle that `register_hook` returned"
    )


def _shown() -> str:
    from leakcheck.runtime.introspection.frames import shown

    return shown(__file__)


def test_a_hook_that_was_removed_keeps_nothing():
    engine = hooked(remove=True)
    gc.collect()

    assert engine() is None


def test_a_tensor_saved_for_backward_is_told_with_its_node():
    inputs = torch.ones(4)
    KEPT.append((inputs * torch.ones(4, requires_grad=True)).sum())

    with pytest.raises(AssertionError) as error, leakcheck.expect_released(inputs):
        del inputs

    assert str(error.value).startswith(
        "1 object that should be gone is alive\n\n"
        "Tensor (4) float32, kept by MulBackward0, which global `registry.KEPT` reaches\n"
        "  global `registry.KEPT`\n"
        "  ├─ [x]: Tensor (scalar) float32\n"
        "  ╰→ .grad_fn ... MulBackward0._saved_self: Tensor (4) float32\n"
        "  fix: `detach()` what is kept of the graph"
    )


def test_a_detached_loss_keeps_no_tensor():
    inputs = torch.ones(4)
    KEPT.append((inputs * torch.ones(4, requires_grad=True)).sum().detach())

    with leakcheck.expect_released(inputs):
        del inputs


def test_no_hook_of_saved_tensors_is_called():
    unpacked: list[object] = []
    inputs = torch.ones(4)
    with torch.autograd.graph.saved_tensors_hooks(lambda each: each, unpacked.append):
        KEPT.append(inputs * torch.ones(4, requires_grad=True))

    with pytest.raises(AssertionError), leakcheck.expect_released(inputs):
        del inputs

    assert unpacked == []


def fails(expected) -> None:
    model = nn.Linear(2, 2)
    expected.watch(model)
    raise ValueError("no such batch")


def test_an_exception_that_is_kept_keeps_the_frames():
    expected = leakcheck.expect_released()
    try:
        fails(expected)
    except ValueError as error:
        KEPT.append(error)

    with pytest.raises(AssertionError) as told:
        expected.check()
    (retained,) = told.value.retained
    assert retained.by == "exception"
    assert "Linear, kept by local model of fails(), kept by a traceback" in str(told.value)
    assert "traceback.clear_frames" in str(told.value)


def test_an_exception_that_is_handled_keeps_nothing():
    with leakcheck.expect_released() as expected, pytest.raises(ValueError, match="batch"):
        fails(expected)


def test_a_memo_is_told():
    @functools.lru_cache
    def remembered(model):
        return None

    model = nn.Linear(2, 2)
    remembered(model)

    with pytest.raises(AssertionError) as error, leakcheck.expect_released(model):
        del model

    assert error.value.retained[0].by == "memo"
    assert "Linear, kept by lru_cache of remembered()" in str(error.value)


def test_a_closure_is_told_with_the_name_in_it():
    def begin(expected) -> None:
        model = nn.Linear(2, 2)
        KEPT.append(lambda: model)
        expected.watch(model)

    with pytest.raises(AssertionError) as error, leakcheck.expect_released() as expected:
        begin(expected)

    assert error.value.retained[0].by == "closure"
    assert "Linear, kept by closure cell `model` of <lambda>()" in str(error.value)


@pytest.mark.parametrize("define", ["lambda model=model: 0", "lambda *, model=model: 0"])
def test_a_default_argument_is_told_with_its_name(define):
    names = {"model": nn.Linear(2, 2)}
    KEPT.append(eval(define, names))

    with pytest.raises(AssertionError) as error, leakcheck.expect_released(names["model"]):
        names.clear()

    assert "Linear, kept by default argument `model` of <lambda>()" in str(error.value)


def test_a_context_variable_is_told():
    def begin(expected) -> None:
        model = nn.Linear(2, 2)
        CURRENT.set(model)
        expected.watch(model)

    with pytest.raises(AssertionError) as error, leakcheck.expect_released() as expected:
        begin(expected)
    CURRENT.set(None)

    assert error.value.retained[0].by == "context variable"
    assert "Linear, kept by context variable `current`" in str(error.value)


def test_a_forward_hook_is_told():
    meter, model = Engine(), nn.Linear(2, 2)
    handle = model.register_forward_hook(functools.partial(print, meter))

    with pytest.raises(AssertionError) as error, leakcheck.expect_released(meter):
        del meter
    assert error.value.retained[0].by == "hook"

    handle.remove()


def test_a_generator_that_waits_is_told():
    def batches(expected):
        model = nn.Linear(2, 2)
        expected.watch(model)
        yield model.in_features

    waiting = batches(expected := leakcheck.expect_released())
    next(waiting)

    with pytest.raises(AssertionError) as error:
        expected.check()
    assert error.value.retained[0].by == "suspended"

    waiting.close()
    expected.check()


def cycle() -> nn.Module:
    model = nn.Linear(2, 2)
    model.callbacks = [model]
    return model


def test_a_cycle_may_wait_for_the_collector():
    with leakcheck.expect_released(cycle()):
        pass


def test_a_cycle_is_told_where_it_must_go_at_once():
    gc.disable()
    try:
        with pytest.raises(AssertionError) as error:
            leakcheck.expect_released(cycle(), collect=False).check()
    finally:
        gc.enable()

    (retained,) = error.value.retained
    assert (retained.by, [link.edge for link in retained.trace.links]) == (
        "cycle",
        [".callbacks", "[x]"],
    )


def test_what_only_another_thread_names_is_told_with_its_function():
    ready, done = threading.Event(), threading.Event()
    expected = leakcheck.expect_released()

    def serve():
        model = nn.Linear(2, 2)
        expected.watch(model)
        ready.set()
        done.wait()

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait()
    try:
        with pytest.raises(AssertionError) as error:
            expected.check()
    finally:
        done.set()
        thread.join()

    (retained,) = error.value.retained
    assert retained.by == "outside"
    assert "serve" in retained.threads
    expected.check()


def test_no_method_of_the_objects_is_called():
    KEPT.append(Engine())

    text = told(KEPT[0])

    assert "Engine, kept by global `registry.KEPT`" in text


def test_the_error_keeps_nothing_alive():
    KEPT.append(nn.Linear(2, 2))
    model = weakref.ref(KEPT[0])
    with pytest.raises(AssertionError) as error:
        leakcheck.expect_released(KEPT[0]).check()
    KEPT.clear()

    assert (model(), error.value.retained[0].what) == (None, "Linear")


def test_what_the_block_raises_is_what_is_told():
    model = nn.Linear(2, 2)

    with pytest.raises(ValueError, match="no such batch"), leakcheck.expect_released(model):
        raise ValueError("no such batch")


def test_a_list_cannot_be_watched():
    with pytest.raises(TypeError) as error:
        leakcheck.expect_released([1])

    assert str(error.value) == (
        "expect_released: a list cannot be watched, it has no weak references; "
        "pass the objects that are in it, as in expect_released(*objects)"
    )


def test_importing_leakcheck_loads_none_of_it():
    code = "import sys, leakcheck; print('leakcheck.released' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


IN_A_TEST = """
    import weakref

    class Trainer:
        pass

    KEPT = []

    def test_leaks(expect_released):
        trainer = Trainer()
        expect_released(trainer)
        KEPT.append(trainer)

    def test_is_clean(expect_released):
        trainer = Trainer()
        expect_released(trainer)
        trainer.itself = trainer

    def test_fails_for_itself(expect_released):
        trainer = Trainer()
        expect_released(trainer)
        assert trainer is None
"""


def test_the_fixture_fails_a_test_that_leaves_an_object(pytester: pytest.Pytester):
    pytester.makepyfile(IN_A_TEST)

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "1 object that should be gone is alive",
            "Trainer, kept by global `*.KEPT`",
            "  ╰→ [[]x]: Trainer",
            "  fix: remove it there when it is done with, or keep a weak reference",
            "*assert trainer is None",
        ]
    )


def test_a_view_keeps_the_memory_of_a_tensor_that_is_gone():
    base = torch.ones(3)
    KEPT.append(base.detach())
    expectation = leakcheck.expect_released(base)
    del base

    with pytest.raises(leakcheck.NotReleasedError) as error:
        expectation.check()

    assert str(error.value) == (
        "1 object that should be gone is alive\n"
        "\n"
        "Tensor (3) float32, kept by global `registry.KEPT`: a Tensor (3) float32 shares its "
        "memory\n"
        "  global `registry.KEPT`\n"
        "  ╰→ [x]: Tensor (3) float32\n"
        "  fix: let go of it, or `clone()` what is to outlive the tensor: a view, `detach()` and "
        "`numpy()` share its memory"
    )


def test_a_copy_keeps_no_memory_of_it():
    base = torch.ones(3)
    KEPT.append(base.detach().clone())

    with leakcheck.expect_released(base):
        del base


def test_a_result_that_its_node_saved_keeps_its_memory():
    hidden = torch.ones(3, requires_grad=True).exp()
    loss = hidden.sum()
    expectation = leakcheck.expect_released(hidden)
    del hidden

    with pytest.raises(
        leakcheck.NotReleasedError, match=r"ExpBackward0\._saved_result: its memory"
    ):
        expectation.check()
    assert loss.requires_grad


def test_after_its_backward_nothing_is_saved():
    hidden = torch.ones(3, requires_grad=True).exp()
    loss = hidden.sum()
    loss.backward()

    with leakcheck.expect_released(hidden):
        del hidden


def test_an_exception_keeps_its_frames_while_it_is_handled():
    expectation = leakcheck.expect_released()
    try:
        fails(expectation)
    except ValueError:
        with pytest.raises(
            leakcheck.NotReleasedError, match="the ValueError that is being handled"
        ):
            expectation.check()


class Trainer:
    def __init__(self, model):
        self.model = model


def test_of_an_attribute_the_fix_leaves_the_object_that_has_it():
    trainer = Trainer(nn.Linear(3, 3))

    text = told(trainer.model)

    assert "kept by attribute `Trainer.model`, from local `trainer` in" in text
    assert "fix: set `Trainer.model` to None when it is done with, or keep a weak reference" in text


def test_an_attribute_that_was_set_to_none_keeps_nothing():
    trainer = Trainer(nn.Linear(3, 3))

    with leakcheck.expect_released(trainer.model):
        trainer.model = None
