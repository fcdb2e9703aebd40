"""Whether what grows is a leak: three tables, of which the first row that holds decides.

An accumulator that is itself backwarded inside the loop, or handed to the caller of a function that
does not train, is how losses are built; what is left is kept for a number nobody differentiates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.source.words import ends_in, says
from leakcheck.static import syntax
from leakcheck.static.facts import passes
from leakcheck.static.flow.attributes import (
    attribute_of,
    differentiated,
    is_buffer,
    reassigned,
    returned_by_methods,
    sets_up,
)
from leakcheck.static.flow.catching import is_caught
from leakcheck.static.flow.gradient import called_without_gradient, freezes, switches_inside
from leakcheck.static.flow.late_detach import detached_late
from leakcheck.static.flow.prospects import DATA
from leakcheck.static.flow.retained import retains
from leakcheck.static.flow.values import SURE, UNKNOWN
from leakcheck.static.torch_api import framework

if TYPE_CHECKING:
    from leakcheck.static.flow.records import Backward, GraphLeakKind, GrowingPlace
    from leakcheck.static.flow.walk import Flow
    from leakcheck.static.module import LoopNode, Module


@dataclass(frozen=True, eq=False)
class Judged:
    """A growing place in the walk that found it, and what the tables ask about it."""

    flow: Flow
    growth: GrowingPlace

    # ---- what grows

    def carries(self) -> bool:
        """It certainly, or likely, holds graphs."""
        return self.growth.value.carries

    def is_sure(self) -> bool:
        """It certainly holds graphs."""
        return self.growth.value.graph == SURE

    def is_carried(self) -> bool:
        """A state is computed from its last value."""
        return self.growth.how == "carry"

    def is_collected(self) -> bool:
        """A container takes in one value after another."""
        return self.growth.how == "collect"

    def is_counted(self) -> bool:
        """Its name says that it sums what was counted: `total_acc`, `num_correct`."""
        return ends_in(self.growth.target.rpartition(".")[2], "counted")

    def grows_by_itself(self) -> bool:
        """No loss or output is added: the place itself requires a gradient."""
        return self.growth.added.leaf or not self.growth.added.carries

    def adds_graph(self) -> bool:
        """What is added carries a graph of its own."""
        return self.growth.added.carries

    def adds_leaf(self) -> bool:
        """What is added has no past: it requires a gradient, and nothing made it."""
        return self.growth.added.leaf

    def depends_on_self_alone(self) -> bool:
        """No argument decides whether there is a graph."""
        return self.growth.value.parameters <= {"self"}

    def overwrites(self) -> bool:
        """The slot's key may come round again within the loop."""
        return self.growth.keyed and not self._has_key_of_turn

    def is_another_slot_each_turn(self) -> bool:
        """`values[key] *= mask`, where every loop that could repeat it goes over the keys."""
        return bool(self._loops) and all(
            self._names_in_key & _turning(loop) for loop in self._loops
        )

    # ---- what backward does

    @cached_property
    def passes(self) -> list[Backward]:
        """The backward passes through the place."""
        sink = id(self.growth.node)
        return [
            each
            for each in (*self.flow.backwards, *self.flow.differentiations)
            if sink in each.value.sinks and not self._is_of_one_entry(each)
        ]

    def is_differentiated(self) -> bool:
        """Backward is called on what has piled up."""
        return bool(self.passes)

    def is_freed_in_time(self) -> bool:
        """Backward is called on what has piled up, as often as it grows or on a container."""
        every_turn = any(self.growth.loops & each.loops for each in self.passes)
        return bool(self.passes) and (self.growth.how != "sum" or every_turn)

    def trains(self) -> bool:
        """The loop that grows calls backward."""
        return any(self.growth.loops & each.loops for each in self.flow.backwards)

    def retains_last_turn(self) -> bool:
        """Backward goes through earlier turns, whose graphs it is told to retain."""
        inside = (each for each in self.flow.backwards if self.growth.loops & each.loops)
        return any(each.value.stale & self.growth.loops and retains(each.node) for each in inside)

    def _is_of_one_entry(self, backward: Backward) -> bool:
        """`losses[-1].backward()` where they are collected: the others keep their graphs."""
        match backward.node:
            case cst.Call(func=cst.Attribute(value=cst.Subscript(value=holder))):
                inside = self.is_collected() and bool(self.growth.loops & backward.loops)
                return inside and syntax.dotted(holder) == self.growth.target.partition("[")[0]
        return False

    # ---- the loop

    @cached_property
    def _loops(self) -> list[LoopNode]:
        return self.flow.module.loops_with(self.growth.loops)

    def runs_over_data(self) -> bool:
        """A loop that grows goes over a data loader or data set."""
        return any(is_data_loop(self.flow, loop) for loop in self._loops)

    def is_used(self) -> bool:
        """What has piled up is read, or handed on."""
        return bool(self.flow.uses.get(id(self.growth.node)))

    @cached_property
    def _has_key_of_turn(self) -> bool:
        """Whether the slot's key is new at each turn of the loop that grows."""
        return any(self._names_in_key & _turning(loop) for loop in self._loops)

    @cached_property
    def _names_in_key(self) -> set[str]:
        keys = [node for part in _keys(self.growth.node) for node in syntax.walk(part)]
        return {node.value for node in keys if isinstance(node, cst.Name)}

    def is_thrown_away_late(self) -> bool:
        """Graphs are kept through a loop only to be thrown away after it."""
        return detached_late(self.flow, self.growth) and not self.is_called_without_gradient()

    def runs_on(self) -> bool:
        """The loop is long by its looks: endless, over data, or the program's own."""
        flow = self.flow
        if flow.owner is not None and flow.owner.is_module:
            return False
        for loop in self._loops:
            endless = isinstance(loop, cst.While) or isinstance(flow.scope, cst.Module)
            if flow.module.loop_of(loop) is None and (endless or is_data_loop(flow, loop)):
                return True
        return False

    def evaluates(self) -> bool:
        """An evaluation over data runs here with gradients on."""
        flow, scope = self.flow, self.flow.scope
        over_data = self.runs_over_data()
        if isinstance(self.growth.node, cst.ListComp):
            over_data = bool(DATA.search(flow.code(self.growth.node.for_in.iter)))
        if flow.backwards or not over_data:
            return False
        if isinstance(scope, cst.Module):
            return self.is_sure()
        named = says(scope.name.value, "evaluates") or _calls_eval(flow, scope)
        return bool(named) and not _is_excused(flow.module, scope)

    def is_sampled(self) -> bool:
        """A pipeline's call takes it from step to step with gradients on, and takes none here."""
        flow, loops = self.flow, self.growth.loops
        if any(loops & taken.loops for taken in (*flow.backwards, *flow.differentiations)):
            return False
        if any(switches_inside(flow.module, loop) for loop in self._loops):
            return False
        same = [g for g in flow.growths.values() if g.loops == loops and _is_sample(flow, g)]
        first = sorted(same, key=lambda growth: growth.how == "carry")[:1]
        return [id(g.node) for g in first] == [id(self.growth.node)] and not freezes(flow.module)

    # ---- the object

    @cached_property
    def attribute(self) -> str:
        """The attribute of self, or the outer name, that grows."""
        return attribute_of(self.growth)

    def is_of_self(self) -> bool:
        """What grows is an attribute of self."""
        return self.growth.target.startswith("self.")

    def is_made_anew(self) -> bool:
        """No method writes here again and again: it is set-up, or no method at all."""
        scope = self.flow.scope
        return self.flow.owner is None or isinstance(scope, cst.Module) or sets_up(scope)

    def lets_go(self) -> bool:
        """The place holds no graph when the function is left."""
        name = f"self.{self.attribute}" if self.is_of_self() else self.attribute
        return not self.flow.keeps_graph(name)

    def is_differentiated_elsewhere(self) -> bool:
        """A method of the class, or its caller, calls backward on what the attribute holds."""
        return self.flow.owner is not None and differentiated(self.flow.owner, self.attribute)

    def is_called_without_gradient(self) -> bool:
        """A caller in the file switches autograd off, or every one in the project does."""
        scope = self.flow.scope
        return not isinstance(scope, cst.Module) and _runs_off(self.flow.module, scope)

    def is_for_training(self) -> bool:
        """Backward is called here, or by a caller on what the method returns."""
        flow = self.flow
        return bool(flow.backwards) or flow.is_called_to_train or self._is_trained()

    def _is_trained(self) -> bool:
        """Whether callers call backward on what the method returns, and on nothing of the place."""
        flow, module = self.flow, self.flow.module
        if id(flow.scope) not in flow.analysis.trained:
            return False
        readers = (n for n in module.nodes(cst.Attribute) if n.attr.value == self.attribute)
        scopes = {module.function_of(n) or module.tree for n in readers} - {flow.scope}
        return not any(flow.analysis.calls_backward(scope) for scope in scopes)

    def is_step_output(self) -> bool:
        """A trainer keeps what a training step returns beside its loss."""
        owner = self.flow.owner
        of_output = self.growth.target.startswith("outputs[")
        return of_output and owner is not None and owner.keeps_step_outputs(self.flow.scope)

    def is_lightning_step(self) -> bool:
        """Lightning calls the method at every step."""
        owner, scope = self.flow.owner, self.flow.scope
        if owner is None or not isinstance(scope, cst.FunctionDef):
            return False
        return owner.is_lightning and scope.name.value in framework("lightning", "per_step")

    def is_reassigned(self) -> bool:
        """Other code gives the attribute another value, or empties it."""
        return reassigned(self.flow, self.attribute, self.growth.node)

    def is_given_back(self) -> bool:
        """A method other than forward returns what the attribute holds."""
        return self.flow.owner is not None and returned_by_methods(self.flow.owner, self.attribute)

    def is_stored_by_module(self) -> bool:
        """A module keeps one more graph at each call, and no other method reads it."""
        owner = self.flow.owner
        stored = owner is not None and owner.is_module and self.is_sure()
        return stored and not self.growth.keyed and not self.is_given_back()

    def is_in_forward(self) -> bool:
        """The method is the forward of a module."""
        owner = self.flow.owner
        return owner is not None and owner.is_module and self.flow.is_forward

    def are_statistics_used(self) -> bool:
        """A method reads the statistics of a forward with their graph, or resets them."""
        owner = self.flow.owner
        if owner is not None and not is_buffer(owner, self.attribute) and self.is_given_back():
            return True
        return reassigned(self.flow, self.attribute, self.growth.node, statistics=True)

    def meters_outputs(self) -> bool:
        """A framework's metric keeps what it is given, detached neither here nor on the way."""
        owner, scope, given = self.flow.owner, self.flow.scope, self.growth.added.parameters
        if owner is None or not isinstance(scope, cst.FunctionDef):
            return False
        if called_without_gradient(self.flow.module, scope) or self.growth.added.graph < UNKNOWN:
            return False
        if given & framework("metrics", "outputs_given"):
            return self.is_collected() and not self.growth.keyed
        if not owner.is_given_graphs or scope.name.value not in ("update", "_update"):
            return False
        update = owner.method("update")
        cut = update is not None and any(
            isinstance(node, cst.Attribute) and node.attr.value in ("detach", "detach_")
            for node in syntax.walk(update.function.body)
        )
        return bool(given - {"self"}) and not cut

    # ---- a name around the function

    def is_caught(self) -> bool:
        """A hook, or a stand-in, takes it from a model that is run for nothing else."""
        return is_caught(self.flow, self.growth)

    def backward_is_called(self) -> bool:
        """The function calls backward."""
        return bool(self.flow.backwards)

    def is_emptied_by_name(self) -> bool:
        """Some code of the module empties a container of this name."""
        return any(_clears(call, self.attribute) for call in self.flow.module.calls)


def _is_excused(module: Module, scope: cst.FunctionDef) -> bool:
    """Whether a function is called with gradients off in its file, or by calling its object."""
    if _runs_off(module, scope):
        return True
    index = module.index_of(scope)
    return index is not None and passes.Passes().is_entered_off(module.facts, index)


def _runs_off(module: Module, scope: cst.FunctionDef) -> bool:
    """Whether a caller in the file has gradients off, or all in the project have."""
    if called_without_gradient(module, scope):
        return True
    index = module.index_of(scope)
    return index is not None and passes.Passes().only_runs_off(module.facts, index)


Question = Callable[[Judged], bool]


class Row:
    """One line of a table: what a place is, None for harmless, when all the conditions hold."""

    def __init__(self, leak: GraphLeakKind | None, *conditions: Question) -> None:
        """Take the answer and its conditions."""
        self.leak = leak
        self.conditions = conditions

    def holds(self, place: Judged) -> bool:
        """Whether all conditions hold; the first that does not ends the questions."""
        return all(condition(place) for condition in self.conditions)


def no(condition: Question) -> Question:
    """Return the opposite of a condition."""
    return lambda place: not condition(place)


IN_LOOP = (
    Row(None, no(Judged.carries)),
    # a state from turn to turn
    Row("carried", Judged.is_sampled),
    Row(None, Judged.is_carried, no(Judged.is_sure)),
    Row("carried", Judged.is_carried, Judged.retains_last_turn),
    Row("carried", Judged.is_carried, no(Judged.trains), Judged.evaluates),
    Row(None, Judged.is_carried),
    # what backward goes through
    Row(None, Judged.is_freed_in_time),
    Row("epoch-long", Judged.is_differentiated, Judged.runs_over_data),
    Row(None, Judged.is_differentiated),
    # what a container keeps
    Row(None, Judged.is_collected, Judged.overwrites),
    Row("collection", Judged.is_collected, Judged.trains),
    Row("collection", Judged.is_collected, Judged.is_thrown_away_late),
    Row("evaluation", Judged.is_collected, Judged.evaluates),
    Row(None, Judged.is_collected),
    # what a sum keeps
    Row(None, Judged.is_counted, no(Judged.grows_by_itself)),
    Row(None, Judged.is_sure, Judged.grows_by_itself, Judged.is_used),
    Row(None, Judged.is_sure, Judged.grows_by_itself, Judged.is_another_slot_each_turn),
    Row(None, Judged.is_sure, Judged.grows_by_itself, Judged.is_called_without_gradient),
    Row("in-place", Judged.is_sure, Judged.grows_by_itself),
    Row("accumulator", Judged.trains),
    Row("accumulator", Judged.is_thrown_away_late),
    Row("evaluation", Judged.evaluates),
    Row("accumulator", Judged.is_sure, Judged.runs_on, no(Judged.is_used)),
)

IN_METHOD = (
    Row(None, Judged.is_made_anew),
    Row("meter", Judged.meters_outputs),
    Row(None, no(Judged.carries)),
    Row(None, Judged.lets_go),
    Row(None, Judged.is_differentiated_elsewhere),
    Row(None, Judged.is_called_without_gradient),
    Row("step-output", Judged.is_lightning_step),
    # a state from call to call
    Row("carried", Judged.is_carried, Judged.is_sure, no(Judged.is_reassigned)),
    Row(None, Judged.is_carried),
    # what a container keeps
    Row(None, Judged.is_collected, Judged.adds_leaf),
    Row(None, Judged.is_collected, Judged.is_reassigned),
    Row("collection", Judged.is_collected, Judged.is_for_training),
    Row("collection", Judged.is_collected, Judged.is_stored_by_module),
    Row(None, Judged.is_collected),
    # what a sum keeps
    Row(None, Judged.is_in_forward, Judged.are_statistics_used),
    Row("statistics", Judged.is_in_forward),
    Row("accumulator", Judged.is_sure, Judged.adds_graph, Judged.is_for_training),
    Row(None, Judged.is_sure, Judged.adds_graph, no(Judged.depends_on_self_alone)),
    Row(None, Judged.is_sure, Judged.adds_graph, Judged.is_given_back),
    Row(None, Judged.is_sure, Judged.adds_graph, Judged.is_reassigned),
    Row("statistics", Judged.is_sure, Judged.adds_graph),
)

AROUND_FUNCTION = (
    Row("step-output", Judged.is_step_output),
    Row("evaluation", Judged.is_caught),
    Row(None, no(Judged.is_sure)),
    Row(None, no(Judged.backward_is_called)),
    Row(None, Judged.is_differentiated),
    Row(None, Judged.lets_go),
    Row(None, Judged.is_emptied_by_name),
    Row("collection", Judged.is_collected),
    Row("accumulator"),
)


def judge(flow: Flow, growth: GrowingPlace) -> GraphLeakKind | None:
    """Say which leak a growing place is, None if it is harmless."""
    place = Judged(flow, growth)
    leak = None
    if growth.per_call:
        leak = _decide(IN_METHOD if place.is_of_self() else AROUND_FUNCTION, place)
    return _decide(IN_LOOP, place) if leak is None and growth.loops else leak


def is_differentiated(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether the walk calls backward on what has piled up."""
    return Judged(flow, growth).is_differentiated()


def is_data_loop(flow: Flow, loop: LoopNode) -> bool:
    """Whether the loop goes over a data loader or data set."""
    return isinstance(loop, cst.For) and bool(DATA.search(flow.code(loop.iter)))


def deciding_row(table: tuple[Row, ...], place: Judged) -> Row | None:
    """Return the first row that holds."""
    return next((row for row in table if row.holds(place)), None)


def _is_sample(flow: Flow, growth: GrowingPlace) -> bool:
    state = growth.how != "collect" and growth.value.graph == SURE
    return state and bool(flow.sampled & growth.value.origins)


def _decide(table: tuple[Row, ...], place: Judged) -> GraphLeakKind | None:
    row = deciding_row(table, place)
    return row.leak if row is not None else None


def _keys(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the slot that `found[step] = x` sets, or the keys of `found.update({step: x})`."""
    match node:
        case cst.AugAssign(target=cst.Subscript() as slot):
            return [*slot.slice]
        case cst.Assign(targets=[cst.AssignTarget(target=target), *_]):
            first = target.elements[0].value if isinstance(target, cst.Tuple) else target
            return [first] if isinstance(first, cst.Subscript) else []
        case cst.Call(args=[cst.Arg(value=cst.Dict(elements=elements))]):
            return [each.key for each in elements if isinstance(each, cst.DictElement)]
    return []


def _turning(loop: LoopNode) -> set[str]:
    """Name what is another at each turn: the targets of a `for`, the counters of a `while`."""
    if isinstance(loop, cst.For):
        return {n.value for n in syntax.walk(loop.target) if isinstance(n, cst.Name)}
    counts = (n for n in syntax.walk(loop.body) if isinstance(n, cst.AugAssign))
    return {n.target.value for n in counts if isinstance(n.target, cst.Name)}


def _calls_eval(flow: Flow, scope: cst.FunctionDef) -> bool:
    return any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval" and not call.args
        for call in flow.module.calls
        if flow.module.function_of(call) is scope
    )


def _clears(call: cst.Call, name: str) -> bool:
    match call.func:
        case cst.Attribute(value=cst.Name(value=holder), attr=cst.Name(value="clear" | "pop")):
            return holder == name
    return False
