"""What a call gives back, and what it does to what it is given.

Asked in this order: a switch of gradient mode, torch's own functions and modules, definitions of
the project, methods of a value; anything else gives back something unknown.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.source.words import Pattern, says
from leakcheck.static import syntax, torch_api
from leakcheck.static.flow.arguments import Arguments
from leakcheck.static.flow.fields import filled
from leakcheck.static.flow.late_detach import note_cut
from leakcheck.static.flow.values import (
    DETACHED,
    EMPTY,
    LIKELY,
    NONE,
    PLAIN,
    SURE,
    UNKNOWN,
    Value,
    alias_of_self,
    derive,
    join_all,
)
from leakcheck.static.torch_api import framework, words

if TYPE_CHECKING:
    from leakcheck.static.flow.walk import Flow

_CRITERION = Pattern(r"(?i)(^|_)(<criterions>)$")
_PLAIN_BUILTINS = frozenset({"float", "int", "len", "str", "bool", "range", "isinstance", "hasattr",
                             "print", "type", "id", "repr", "callable", "open"})  # fmt: skip
_CONTAINERS = frozenset({"list", "dict", "bounded", "unknown"})
_MOVES = frozenset({"to", "cuda", "cpu", "half", "float", "double", "bfloat16", "eval", "train"})
_SAME_BUILTINS = frozenset({"list", "tuple", "set", "reversed", "sorted", "iter"})


def evaluate_call(flow: Flow, call: cst.Call) -> Value:
    """Return what a call gives back; its effects on names, loops and evidence are applied."""
    qualified = flow.module.qualified(call.func)
    arguments = Arguments(flow, call)
    if path := flow.path(call):  # getattr(self, "total", 0)
        held = flow.held(path)
        return held or (flow.entry(path) if re.fullmatch(r"self\.\w+", path) else EMPTY)
    if (written := syntax.set_attribute(call)) is not None and flow.writes_again:
        flow.rebind(call, *written)
        return EMPTY
    if flow.switch_gradient(call, qualified):
        return EMPTY
    if qualified.startswith("torch"):
        return _torch_call(flow, call, qualified, arguments)
    if (given := _library_call(flow, call, qualified, arguments)) is not None:
        return given
    if qualified.startswith("collections."):
        return _named_call(flow, call, qualified.rpartition(".")[2], arguments)
    definition = flow.analysis.definition(call.func, flow)
    if definition is not None:
        return definition.call(flow, call, arguments)
    match call.func:
        case cst.Name(value=name):
            return _named_call(flow, call, name, arguments)
        case cst.Attribute(value=receiver, attr=cst.Name(value=method)):
            return _method_call(flow, call, receiver, method, arguments)
    called = flow.evaluate(call.func)
    return _called_value(flow, call, called, arguments)


def _library_call(flow: Flow, call: cst.Call, qualified: str, arguments: Arguments) -> Value | None:
    """Return what a function of another library gives back that the tables know; None if not."""
    if qualified in words("functions", "keep_graph"):
        return flow.made(derive(arguments.all, flow.born))
    if qualified in words("functions", "packs"):
        packed = flow.made(derive(arguments.all, flow.born))
        return Value(NONE, "tuple", items=((0, packed), (1, PLAIN)))
    if qualified in words("functions", "keep_arguments"):
        return Value(NONE, "list", born=flow.born, element=join_all(arguments.all))
    if qualified in words("functions", "adds_to_first") and call.args:
        container = call.args[0].value
        return flow.grow_container(call, container, arguments.first, "append", arguments)
    if any(qualified.startswith(name) for name in framework("metrics", "detaching_calls")):
        return Value(NONE, "unknown")
    return None


def _torch_call(flow: Flow, call: cst.Call, name: str, arguments: Arguments) -> Value:
    function = torch_api.torch_function(name)
    if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return Value(SURE, "tensor", leaf=True)
    if name == "torch.autograd.backward":
        flow.backward(arguments.first, call)
        return EMPTY
    if name == "torch.autograd.grad":
        return _gradients(flow, call, arguments)
    if torch_api.is_loss_module(name):
        return Value(NONE, "loss")
    if torch_api.is_learnable_module(name):
        return Value(NONE, "module", ref=None)
    if torch_api.is_loss_function(name):
        return _loss(flow, call, arguments)
    if name.startswith("torch.distributions.") and arguments.all:
        return flow.made(derive(arguments.all, flow.born))  # log_prob leads back to the parameters
    if function in words("functions", "without_graph") or not function:
        wants = syntax.argument(call, "requires_grad")
        if wants is not None and syntax.constant(wants.value) is True:
            return flow.made(Value(SURE, "tensor", born=flow.born, leaf=True))
        return Value(NONE, "tensor", born=flow.born) if function else opaque(flow, call, arguments)
    result = flow.made(derive(arguments.all, flow.born)) if arguments.all else DETACHED
    if function in words("functions", "values_and_indices") and len(call.args) > 1:
        return Value(NONE, "tuple", items=((0, result), (1, DETACHED)))
    return result


def _gradients(flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
    flow.differentiated(arguments.first, call)
    create = syntax.argument(call, "create_graph")
    keeps = create is not None and syntax.constant(create.value) is not False
    graph = SURE if keeps and create and syntax.constant(create.value) is True else UNKNOWN
    inner = Value(graph if keeps else NONE, "tensor", born=flow.born)
    return Value(NONE, "list", born=flow.born, element=flow.made(inner))


def _loss(flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
    known = [value.contents for value in arguments.all[:2]]
    graph = max((value.graph for value in known), default=UNKNOWN)
    if known and known[0].graph == NONE and graph <= UNKNOWN:
        return Value(NONE, "tensor")
    made = derive(known, flow.born)
    graph = max(graph, LIKELY) if not made.parameters else max(graph, UNKNOWN)
    own = frozenset({id(call)}) | (known[0].origins if known else frozenset())
    likely = replace(made, graph=graph, origins=own, kind="tensor", floats=False)
    if made.parameters and graph == UNKNOWN:
        likely = replace(likely, graph=LIKELY)
    return flow.seen(flow.made(likely))


def _named_call(flow: Flow, call: cst.Call, name: str, arguments: Arguments) -> Value:
    called = flow.read(name)
    if called.kind in ("module", "loss", "object"):
        return _called_value(flow, call, called, arguments)
    if flow.is_module(name):
        return _module_result(flow, call, arguments)
    if name in flow.analysis.tuple_fields:
        return filled(flow.analysis.tuple_fields[name], arguments, flow.born)
    if name in _PLAIN_BUILTINS:
        return PLAIN
    if name in _SAME_BUILTINS:
        inner = arguments.first
        return Value(NONE, "list", born=flow.born, element=inner.contents) if call.args else (
            Value(NONE, "dict" if name == "set" else "list", born=flow.born)
        )  # fmt: skip
    if name in ("dict", "defaultdict", "OrderedDict"):
        entries = _entries(flow, call, name, arguments.first)
        if entries is None and name != "defaultdict" and arguments.positional:  # a copy of others
            entries = join_all(each.contents for each in arguments.positional)
        value = Value(NONE, "dict", born=flow.born, element=entries)
        for key, item in arguments.named.items():
            value = value.with_slot(key, item)
        return value
    if name == "deque":
        limit = syntax.argument(call, "maxlen", 1)
        limited = limit is not None and syntax.constant(limit.value) is not None
        return Value(NONE, "bounded" if limited else "list", born=flow.born)
    if name in ("sum", "max", "min", "abs", "pow"):
        return flow.made(derive(arguments.all, flow.born))
    if name == "zip" and not arguments.spread:
        parts = tuple((place, each.contents) for place, each in enumerate(arguments.positional))
        return Value(NONE, "list", element=Value(NONE, "tuple", born=flow.born, items=parts))
    if name in ("zip", "enumerate", "tqdm", "map", "filter"):
        return Value(NONE, "list", element=join_all(v.contents for v in arguments.all))
    return opaque(flow, call, arguments, name)


def _entries(flow: Flow, call: cst.Call, name: str, given: Value) -> Value | None:
    """Return the objects that a dict is made with: of pairs, or by the class it is given."""
    if name == "defaultdict" and call.args:
        made = flow.analysis.made_by(call.args[0].value)
        return Value(NONE, "object", ref=made) if made is not None else None
    pair = given.element
    entry = dict(pair.items).get(1) if pair is not None and pair.kind == "tuple" else None
    return entry if entry is not None and entry.kind == "object" else None


def _called_value(flow: Flow, call: cst.Call, called: Value, arguments: Arguments) -> Value:
    if called.kind == "loss":
        return _loss(flow, call, arguments)
    if called.kind == "module":
        return _module_result(flow, call, arguments)
    if called.kind == "object" and called.ref is not None:
        answer = called.ref.call_method("__call__", flow, call, arguments)
        if answer is not None:
            return answer
    return opaque(flow, call, arguments)


def _module_result(flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
    value = Value(SURE, "tensor", frozenset({id(call)}), born=flow.born, sinks=arguments.sinks)
    given = derive(arguments.all, flow.born)
    value = replace(value, stale=given.stale, entries=given.entries, inputs=given.inputs)
    return flow.seen(flow.made(value))


def _method_call(
    flow: Flow, call: cst.Call, receiver: cst.BaseExpression, method: str, arguments: Arguments
) -> Value:
    path = flow.path(call.func)
    called = flow.held(path) if path else None
    if called is None and path.startswith("self.") and path.count(".") == 1:
        called = flow.entry(path)
    if called is not None and called.kind in ("module", "loss", "object"):
        return _called_value(flow, call, called, arguments)
    if path and flow.is_module(path):
        return _module_result(flow, call, arguments)
    if method in framework("backward", "methods"):
        return _backward(flow, call, receiver, method, arguments)
    if method in ("parameters", "named_parameters"):
        return _parameters(method, flow)
    base = flow.evaluate(receiver)
    if base.kind == "object" and base.ref is not None:
        answer = base.ref.call_method(method, flow, call, arguments)
        if answer is not None:
            return answer
    if method == "step" and (closure := arguments.first.function) is not None:
        return closure.apply(flow, call, {}, frozenset())  # optimizers give its loss back
    if base.kind == "module" and method in ("forward", "__call__"):
        return _module_result(flow, call, arguments)
    if method in _MOVES and base.kind in ("module", "loss", "object"):
        return base
    if method in framework("modules", "factory_methods"):
        return Value(NONE, "module")
    if method in words("methods", "grow") and base.kind in _CONTAINERS:
        return flow.grow_container(call, receiver, base, method, arguments)
    if base.kind in ("list", "dict", "tuple"):
        return _container_method(flow, receiver, base, method, arguments)
    if method in ("items", "values") and not arguments.all:
        entry = replace(base, graph=SURE) if _are_losses(flow, receiver, base) else base
        pair = Value(NONE, "tuple", items=((0, PLAIN), (1, entry)))
        return Value(NONE, "list", element=pair if method == "items" else entry)
    if method in framework("pipelines", "step") and len(arguments.all) > 2 and flow.samples:
        return _sampled(flow, call, arguments)
    _guess_receiver(flow, call, receiver, base, arguments)
    return _tensor_method(flow, call, receiver, base, method, arguments)


def _sampled(flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
    """Return what a scheduler makes of a model's output and the sample that it was asked about."""
    made = derive(arguments.all, flow.born)
    output = arguments.first.contents
    asked = output.graph == UNKNOWN and bool(output.origins)  # under no_grad it has none
    graph = SURE if asked else made.graph
    flow.sampled.add(id(call))
    return flow.made(replace(made, graph=graph, origins=made.origins | {id(call)}))


def _are_losses(flow: Flow, receiver: cst.BaseExpression, base: Value) -> bool:
    """Whether these are the losses of a criterion, and backward was called on one of them."""
    shown = base.graph == UNKNOWN and base.origins & flow.analysis.shown_by_slots
    return bool(shown) and says(flow.code(receiver), "loss")


def _guess_receiver(
    flow: Flow, call: cst.Call, receiver: cst.BaseExpression, base: Value, arguments: Arguments
) -> None:
    """Note what an object of unknown class keeps, if one class of the project has the method."""
    told = flow.recording and flow.backwards and isinstance(flow.module.parent(call), cst.Expr)
    graphs = any(value.contents.graph == SURE for value in arguments.all)
    foreign = flow.code(receiver) == "self" or flow.module.qualified(receiver)
    if not told or not graphs or foreign or base.kind != "unknown" or base.carries:
        return
    called = cst.ensure_type(call.func, cst.Attribute)
    info = flow.analysis.only_definer(called)
    before = len(flow.feeds)
    if info is not None and not info.is_module:
        info.call_method(called.attr.value, flow, call, arguments)
    flow.feeds[before:] = [replace(feed, guessed=True) for feed in flow.feeds[before:]]


def _parameters(method: str, flow: Flow) -> Value:
    parameter = Value(SURE, "tensor", born=flow.born, leaf=True)
    named = Value(NONE, "tuple", items=((0, PLAIN), (1, parameter)))
    return Value(NONE, "list", element=named if method == "named_parameters" else parameter)


def _is_engine(code: str) -> bool:
    return code == "self" or says(code, "engines")


def _backward(
    flow: Flow, call: cst.Call, receiver: cst.BaseExpression, method: str, arguments: Arguments
) -> Value:
    base = flow.evaluate(receiver)
    if arguments.positional and base.kind != "tensor":
        given = flow.code(call.args[0].value)
        if arguments.first.carries or "loss" in given or _is_engine(flow.code(receiver)):
            base = arguments.first  # accelerator.backward(loss), engine.backward(loss)
    flow.backward(base, call)
    return EMPTY


def _container_method(
    flow: Flow, receiver: cst.BaseExpression, base: Value, method: str, arguments: Arguments
) -> Value:
    if method == "clear":
        empty = Value(NONE, base.kind, born=base.born)
        flow.assign(receiver, empty, None)
        if alias := alias_of_self(flow.path(receiver), base):
            flow.env[alias] = empty
        return EMPTY
    if method in ("values", "copy", "pop", "popleft", "get", "setdefault"):
        inner = base.contents
        if method == "values":
            return Value(NONE, "list", element=inner)
        if len(arguments.all) > 1 and arguments.all[1].kind in ("list", "dict"):
            return replace(
                arguments.all[1], element=inner
            )  # .setdefault(key, []): one of its lists
        return base if method == "copy" else inner
    if method == "items":
        pair = Value(NONE, "tuple", items=((0, PLAIN), (1, base.contents)))
        return Value(NONE, "list", element=pair)
    return PLAIN if method in ("keys", "index", "count", "sort", "remove") else base.contents


def _tensor_method(
    flow: Flow,
    call: cst.Call,
    receiver: cst.BaseExpression,
    base: Value,
    method: str,
    arguments: Arguments,
) -> Value:
    if method == "requires_grad_":
        return _require_gradient(flow, call, receiver, base)
    if method in words("methods", "cut"):
        if method in ("detach", "detach_"):
            note_cut(flow, base)
        if method == "detach_":
            flow.assign(receiver, DETACHED, None)
        return PLAIN if method in words("methods", "plain") else DETACHED
    if method in words("methods", "of_text"):
        return PLAIN
    if method in words("methods", "in_place_sums"):
        return flow.sum_in_place(call, receiver, base, arguments.first.contents)
    if method in words("methods", "show"):
        return EMPTY
    if method in framework("backward", "wrappers") and arguments.all and not base.carries:
        return arguments.first  # scaler.scale(loss)
    if base.carries or (base.graph == UNKNOWN and (base.parameters or base.entries)):
        result = derive([base, *_operands(method, arguments, base)], flow.born)
        if result.graph == UNKNOWN:
            graph = LIKELY if _makes_loss(flow, method, arguments) else UNKNOWN
            result = replace(result, graph=graph, origins=result.origins | {id(call)})
        result = flow.seen(flow.made(result))
        if method in words("methods", "values_and_indices") and arguments.all:
            return Value(NONE, "tuple", items=((0, result), (1, DETACHED)))
        return result
    if base.graph == NONE and base.kind == "tensor":
        return flow.made(derive([base, *_operands(method, arguments, base)], flow.born))
    if base.graph == UNKNOWN and base.origins and method in words("methods", "reshape"):
        return flow.seen(replace(base, kind="unknown", items=(), element=None, born=flow.born))
    if base.graph == UNKNOWN and not arguments.all and base.origins:
        return base if method not in ("next",) else Value()
    return opaque(flow, call, arguments, method, base)


def _operands(method: str, arguments: Arguments, base: Value) -> list[Value]:
    """Return the arguments whose graph is in what a tensor's method gives back.

    Of what is not known to be a tensor, `self.env.step(action)`, only those of a tensor's methods.
    """
    known = base.carries or base.kind == "tensor" or method in words("methods", "of_two")
    by_example = method in words("methods", "by_example")
    taken = arguments.positional if known and not by_example else ()
    return [value for value in taken if value.carries]


def _require_gradient(
    flow: Flow, call: cst.Call, receiver: cst.BaseExpression, base: Value
) -> Value:
    wanted = syntax.constant(call.args[0].value) if call.args else True
    if wanted is not True or base.kind in ("module", "object"):
        return base
    value = Value(SURE, "tensor", born=flow.born, leaf=True)
    if flow.path(receiver):
        flow.assign(receiver, value, None)
    return value


def _shown(flow: Flow, value: Value) -> bool:
    """Whether a value has a graph, or came together with one that backward was called on."""
    return value.graph == SURE or (
        value.graph == UNKNOWN and flow.analysis.beside_evident(value.contents)
    )


def _makes_loss(flow: Flow, name: str, arguments: Arguments) -> bool:
    """Whether a call is named for a loss, and is given what has a graph."""
    return bool(name and says(name, "loss")) and any(_shown(flow, v) for v in arguments.all)


def _guess(name: str, arguments: Arguments) -> Value:
    """Return what the result of `criterion(guess, target)` comes from; EMPTY for other calls."""
    given = arguments.positional
    if len(given) < 2 or not _CRITERION.search(name) or given[0].contents.parameters:
        return EMPTY
    return given[0].contents


def opaque(
    flow: Flow, call: cst.Call, arguments: Arguments, name: str = "", base: Value = EMPTY
) -> Value:
    """Return what a call gives back of which nothing is known but its name and arguments."""
    flow.hand_over(call, name, arguments)
    if arguments.all and flow.folds(call, arguments):
        return flow.made(derive(arguments.all, flow.born))
    if flow.passes_on(call) and (made := derive(arguments.all, flow.born)).graph == LIKELY:
        return flow.made(made)  # a layer that the module was given
    graph = LIKELY if _makes_loss(flow, name, arguments) else UNKNOWN
    guess = _guess(name, arguments)
    value = Value(
        graph,
        origins=frozenset({id(call)}) | guess.origins,
        born=flow.born,
        stale=guess.stale,
        sinks=arguments.sinks | base.contents.sinks,
    )
    return flow.seen(flow.made(value))
