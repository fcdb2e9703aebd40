"""torch.load without map_location: tensors go back to the device they were saved from."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Evidence
from leakcheck.static import shape
from leakcheck.static.facts.link import is_test
from leakcheck.static.facts.model import Call, Expr, FileFacts
from leakcheck.static.module import Module
from leakcheck.static.queries import lifetime
from leakcheck.static.queries.checkpoints import weighs
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, walk


class LoadWithoutMapLocation(Rule):
    """Checkpoints for a live model that are loaded wherever they were saved."""

    code = "LK403"
    summary = "a checkpoint is restored onto the device that saved it, beside the live model"
    help = 'pass map_location="cpu"; load_state_dict copies to where the model is'
    severity = "info"
    proof = "static only: a peak while the checkpoint is loaded, no growth from step to step"
    words = ("torch.load",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each torch.load whose result reaches load_state_dict."""
        for call in module.calls_of("torch.load"):
            place = shape.keyword_value(call, "map_location", 1)
            absent = place is None or _says_none(place) or _none_or_cpu(module, place)
            starred = any(arg.star for arg in call.args)
            if not absent or starred or _is_one_of_two(module, call) or _is_copy(module, call):
                continue
            evidence = _handed_back(module, call)
            restored = _restores(module, call)
            found = restored or _is_named_checkpoint(module, call)
            if evidence or (found and not _is_of_light(module, call)):
                shown = evidence or weighs(module, call, restored=restored)
                at_once = _restorer(module, call) is not None
                brief = is_test(module.facts.path) or at_once or not shown
                yield self.hit(
                    call,
                    "the checkpoint is made on the device it was saved from",
                    confidence="low" if brief else "medium",
                    evidence=evidence,
                )


def _is_one_of_two(module: Module, call: cst.Call) -> bool:
    """Whether the device decides, and the other branch says where to: this one means to stay."""
    inner: cst.CSTNode = call
    for above in module.ancestors(call):
        if isinstance(above, cst.FunctionDef):
            return False
        decides = isinstance(above, cst.If) and _DEVICE.search(module.code(above.test)) is not None
        if isinstance(above, cst.If) and decides and isinstance(above.orelse, cst.Else):
            other = above.orelse if inner is above.body else above.body
            loads = (n for n in walk(other) if isinstance(n, cst.Call) and n is not call)
            placed = (n for n in loads if module.qualified(n.func) == "torch.load")
            if any(shape.keyword_value(each, "map_location", 1) is not None for each in placed):
                return inner in (above.body, above.orelse)
        inner = above
    return False


def _is_copy(module: Module, call: cst.Call) -> bool:
    """Whether the function itself has just saved it to the same buffer, to have it twice.

    A file is read anew because the one that was in memory has changed.
    """
    function, source = module.function_of(call), dotted(call.args[0].value) if call.args else ""
    filled = any(
        len(each.args) > 1 and dotted(each.args[1].value) == source
        for each in module.calls_of("torch.save")
        if module.function_of(each) is function
    )
    return filled and any(
        shape.binds(node, source) and "BytesIO" in module.code(node)
        for node in shape.own_nodes(function or module.tree)
    )


_DEVICE = re.compile(r"cuda|cpu|gpu|device", re.IGNORECASE)


def _says_none(value: cst.BaseExpression) -> bool:
    """`None`, `None if cuda else "cpu"`, not `place if place is not None else device`."""
    match value:
        case cst.IfExp(body=body, orelse=orelse):
            return _says_none(body) or _says_none(orelse)
    return dotted(value) == "None"


def _none_or_cpu(module: Module, place: cst.BaseExpression) -> bool:
    """`location = None`, and the CPU only where there is no other device."""
    function = module.function_of(place)
    if not isinstance(place, cst.Name) or function is None:
        return False
    values = [
        node.value
        for node in shape.own_nodes(function)
        if isinstance(node, cst.Assign) and shape.binds(node, place.value)
    ]
    others = [value for value in values if not _says_none(value)]
    return len(values) > len(others) and all("cpu" in module.code(value) for value in others)


def _is_named_checkpoint(module: Module, call: cst.Call) -> bool:
    """`checkpoint = torch.load(path)`, `torch.load(ckpt_path)["step"]`: all of it comes there.

    What an object keeps under another name is meant to stay: `self.net = torch.load(ckpt_path)`.
    """
    path = dotted(call.args[0].value) if call.args else ""
    name = _kept_as(module, call)
    if name and "state" not in name:
        path = ""
    name = name or lifetime.bound_name(module, call)
    words = f"{name} {path.rpartition('.')[2]}".lower()
    return any(word in words for word in shape.api("checkpoint-words"))


def _kept_as(module: Module, call: cst.Call) -> str:
    """Return the attribute that the very result is bound to; empty where it is no attribute."""
    above = module.parent(call)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    return target.attr.value if isinstance(target, cst.Attribute) else ""


def _is_of_light(module: Module, call: cst.Call) -> bool:
    """Whether a schedule is all that it restores, or it is the file of settings or of seeds."""
    path = module.code(call.args[0].value) if call.args else ""
    name = lifetime.bound_name(module, call)
    nodes = shape.own_nodes(module.function_of(call) or module.tree) if name else ()
    restored = [
        node
        for node in nodes
        if isinstance(node, cst.Call)
        and shape.last_name(node) == "load_state_dict"
        and any(shape.mentions(arg.value, name) for arg in node.args)
    ]
    return _SETTINGS.search(path) is not None or (bool(restored) and all(map(_is_light, restored)))


_SETTINGS = re.compile(r"param_group|(^|_)rng(_|$)")


def _restores(module: Module, call: cst.Call) -> bool:
    if _is_weights(module.parent(call)):
        return True
    restorer = _restorer(module, call)
    if restorer is not None:
        return not _is_light(restorer) and not module.qualified(restorer.func)
    function = module.function_of(call)
    nodes = list(shape.own_nodes(function or module.tree))
    names = _derived(nodes, call)
    if any(_takes_weights(node, names) for node in nodes):
        return True
    restoring = _restorers(module) - {function.name.value if function is not None else ""}
    return any(
        isinstance(node, cst.Call)
        and (shape.last_name(node) in _RESTORES or _own(node.func) in restoring)
        and not _is_light(node)
        and any(isinstance(n, cst.Name) and n.value in names for a in node.args for n in walk(a))
        for node in nodes
    )


def _restorer(module: Module, call: cst.Call) -> cst.Call | None:
    """Return the call of load_state_dict that it is an argument of: it is let go as that ends."""
    for above in module.ancestors(call):
        if isinstance(above, cst.Call) and shape.last_name(above) == "load_state_dict":
            return above
        if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            break
    return None


_RESTORES = ("load_state_dict", "load_state")


def _restorers(module: Module) -> set[str]:
    """Name the functions of the file that give a module its state."""
    around = (module.function_of(c) for c in module.calls if shape.last_name(c) == _RESTORES[0])
    return {function.name.value for function in around if function is not None}


def _own(name: cst.BaseExpression) -> str:
    """`f` or `self.f`, without the self."""
    spelled = dotted(name).removeprefix("self.")
    return "" if "." in spelled else spelled


def _handed_back(module: Module, call: cst.Call) -> tuple[Evidence, ...]:
    """Return where the function gives it to a caller in the project that restores a model."""
    function = module.function_of(call)
    if function is None or not isinstance(module.parent(call), cst.Return):
        return ()
    name = function.name.value
    if name.strip("_") in _ANYBODYS or "_" not in name.strip("_"):
        return ()  # many a `load` is another's
    for facts, made in module.facts.calls_of(name):
        for restore in _restored(facts, made):
            returned = Evidence(module.location(call), "returned", name)
            place = module.location_in(facts, restore.at)
            found = Evidence(place, "restored", restore.spelled) if place else None
            return (returned, found) if found else (returned,)
    return ()


_ANYBODYS = ("load_state", "load_file", "load_data", "load_pickle", "load_object")


def _restored(facts: FileFacts, made: Call) -> Iterator[Call]:
    """Yield the calls of load_state_dict in the same function that are given what a call gives."""
    for call in facts.calls_in(made.function):
        restores = call.method == "load_state_dict" and not _says_light(call.spelled)
        if restores and any(_is_of(argument.value, made) for argument in call.arguments):
            yield call


def _is_of(value: Expr, made: Call) -> bool:
    if made.bound:
        return made.bound in (value.text, *value.names)
    return value.kind == "call" and value.text.rpartition(".")[2] == made.method


def _is_light(restore: cst.Call) -> bool:
    """A schedule, a scaler, a sampler: a few numbers, not a model."""
    return _says_light(dotted(restore.func))


def _says_light(spelled: str) -> bool:
    return any(word in spelled.lower() for word in ("sched", "scaler", "sampler", "loader"))


def _takes_weights(node: cst.CSTNode, names: set[str]) -> bool:
    """`checkpoint["model"]`: a model's weights, whatever becomes of them."""
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name):
        return False
    return node.value.value in names and _is_weights(node)


def _is_weights(node: cst.CSTNode | None) -> bool:
    match node:
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]
        ):
            return key.raw_value in _WEIGHTS
    return False


_WEIGHTS = ("model", "state_dict", "model_state_dict", "model_state", "optimizer", "net", "ema")


def _derived(nodes: list[cst.CSTNode], call: cst.Call) -> set[str]:
    """The names that hold the checkpoint or a part of it: `state = torch.load(path)["model"]`."""
    names: set[str] = set()
    for node in nodes:
        if not isinstance(node, cst.Assign):
            continue
        inner = list(walk(node.value))
        taken = any(isinstance(n, cst.Name) and n.value in names for n in inner)
        if taken or any(n is call for n in inner):
            names |= {name for t in node.targets for name in shape.target_names(t.target)}
    return names
