"""Cycles are named by what they are made of, the program's own types first."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.readings.cycles import GarbageKind, freed, population


class Link:
    def __init__(self) -> None:
        self.me = self


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x * x
        return ctx.y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.y.sqrt()


def named(make_garbage: Callable[[], object]) -> tuple[GarbageKind, ...]:
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            make_garbage()
        before = population(named=True)
        gc.collect()
        return freed(before, population(named=False))
    finally:
        gc.enable()


def line_of(function: Callable[..., object]) -> int:
    return function.__code__.co_firstlineno


def test_a_class_of_the_program_is_named_with_its_first_line_of_code():
    assert named(Link) == (GarbageKind("Link", Site(__file__, line_of(Link.__init__))),)


def test_the_node_of_an_autograd_function_is_named_by_the_function_s_class():
    def step() -> None:
        Square.apply(torch.ones(3, requires_grad=True) * 2).sum().backward()

    found = named(step)
    assert found[0] == GarbageKind("Square", Site(__file__, line_of(Square.forward)))
    assert GarbageKind("Tensor") in found


def test_lists_and_dicts_are_named_only_if_nothing_else_was_freed():
    def tie() -> None:
        knot: list[object] = []
        knot.append(knot)

    assert named(tie) == (GarbageKind("list"),)


def test_nothing_is_named_when_nothing_was_freed():
    assert named(object) == ()


def test_a_type_that_is_garbage_itself_is_freed_all_the_same():
    def passing() -> None:
        kind = type("Passing", (), {})
        kind.me = kind()

    named(passing)
    assert not [kind for kind in object.__subclasses__() if kind.__name__ == "Passing"]
