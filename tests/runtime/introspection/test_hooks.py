from __future__ import annotations

import sys

import pytest

from leakcheck.runtime.introspection.hooks import count_hooks, hooks_of

torch = pytest.importorskip("torch")


class Watchful(torch.nn.Module):
    """A module that does not let its attributes be asked for."""

    def __getattribute__(self, name):
        raise AssertionError(name)


def test_hooks_of_modules_are_counted_until_their_handle_removes_them():
    model = torch.nn.Linear(2, 2)
    before = count_hooks([model], [], [])
    handles = [
        model.register_forward_hook(print),
        model.register_forward_pre_hook(print),
        model.register_full_backward_hook(print),
        model.register_state_dict_post_hook(lambda *_: None),
        model.register_load_state_dict_pre_hook(print),
    ]
    assert count_hooks([model, torch.nn.ReLU()], [], []) - before == 5

    handles[0].remove()

    assert count_hooks([model], [], []) - before == 4


def test_hooks_of_optimizers_are_counted():
    optimizer = torch.optim.SGD([torch.zeros(1)])
    before = count_hooks([], [optimizer], [])

    optimizer.register_step_pre_hook(print)
    optimizer.register_step_post_hook(print)
    optimizer.register_state_dict_post_hook(print)

    assert count_hooks([], [optimizer], []) - before == 3


@pytest.mark.parametrize("name", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_parameters_are_counted(name):
    weight = torch.nn.Parameter(torch.zeros(2))
    before = count_hooks([], [], [weight])

    for _ in range(3):
        getattr(weight, name)(lambda _: None)

    assert count_hooks([], [], [weight, torch.zeros(1)]) - before == 3


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.nn.modules.module", "register_module_forward_hook"),
        ("torch.optim.optimizer", "register_optimizer_step_post_hook"),
    ],
)
def test_hooks_for_all_of_a_kind_are_counted_once(module, name):
    before = count_hooks([], [], [])

    handle = getattr(sys.modules[module], name)(lambda *_: None)

    try:
        assert count_hooks([torch.nn.ReLU(), torch.nn.ReLU()], [], []) - before == 1
    finally:
        handle.remove()
    assert count_hooks([], [], []) == before


def test_no_attribute_is_asked_for_by_way_of_the_program():
    model = torch.nn.Module()
    model.register_forward_hook(print)
    before = count_hooks([], [], [])
    object.__setattr__(model, "__class__", Watchful)

    assert count_hooks([model], [], []) - before == 1


def test_a_hook_of_a_parameter_is_held_by_its_hooks_and_not_by_its_gradient():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.register_hook(lambda gradient: gradient)
    weight.grad = torch.zeros(2)

    assert hooks_of(weight, "_backward_hooks") is weight._backward_hooks
    assert hooks_of(torch.zeros(1), "_backward_hooks") is None
