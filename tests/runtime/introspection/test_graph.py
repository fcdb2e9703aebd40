from __future__ import annotations

import gc

import torch

from leakcheck.runtime.introspection import graph


def chain(length: int) -> torch.Tensor:
    value = torch.zeros(1, requires_grad=True) * 1
    for _ in range(length):
        value = value + 1
    return value


def test_every_node_of_a_chain_is_counted_once():
    value = chain(20)

    nodes = graph.reachable([value.grad_fn, value.grad_fn])

    assert len(nodes) == 22  # the additions, the product and the leaf's AccumulateGrad


def test_a_walk_ends_at_the_watermark():
    old = chain(20)
    since = graph.sequence_number()
    new = (old + 1) + 1

    nodes = graph.reachable([new.grad_fn], since=since)

    assert [node.name() for node in nodes] == ["AddBackward0", "AddBackward0"]


def test_a_walk_is_cut_at_its_limit():
    assert len(graph.reachable([chain(50).grad_fn], limit=10)) == 10


def test_old_nodes_are_reached_only_if_they_are_alive():
    old = chain(3)
    mark = graph.sequence_number()

    kept, cut = (old + 1).grad_fn, (old.detach().requires_grad_() + 1).grad_fn

    assert graph.reaches(kept, mark)
    assert not graph.reaches(cut, mark)


def test_a_subclass_with_its_own_torch_function_is_not_asked():
    class Shy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("the program's code ran")

    with torch._C.DisableTorchFunction():
        shy = (torch.zeros(1, requires_grad=True) + 1).as_subclass(Shy)

    assert [node.name() for _, node in graph.grad_fns([shy])] == ["AliasBackward0"]


def test_looking_at_a_graph_makes_no_node():
    value = chain(5)
    before = graph.sequence_number()

    graph.reachable([node for _, node in graph.grad_fns([value])])

    assert graph.sequence_number() == before


def test_looking_at_a_graph_keeps_nothing_alive():
    died = []
    value = chain(5)
    value.grad_fn.metadata["token"] = token = type("Token", (), {})()
    gc.collect()
    import weakref

    weakref.finalize(token, died.append, True)
    del token
    graph.reachable([value.grad_fn])
    del value

    assert died == [True]


def test_a_ctx_that_outlived_its_graph_is_no_node():
    class Gone:
        def _sequence_nr(self) -> int:
            raise RuntimeError("Attribute '_sequence_nr' is invalid for this instance")

    node = chain(1).grad_fn

    assert graph.attached([Gone(), node]) == [node]
