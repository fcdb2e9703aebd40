"""Evaluation appends the model's outputs to a list without moving them off the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static import shape, syntax
from leakcheck.static.facts.model import AttributeEffect, Call, FileFacts
from leakcheck.static.module import LoopNode, Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes, outline_nodes_of, outline_walk, walk

# what Lightning calls without gradients, with the outputs of a batch
_BATCH_ENDS = (
    "on_predict_batch_end",
    "on_validation_batch_end",
    "on_test_batch_end",
    "write_on_batch_end",
)
_GIVEN = ("outputs", "prediction", "batch")


class OutputsKeptOnDevice(Rule):
    """Outputs collected over a loader, without gradients and without `.cpu()`."""

    code = "LK401"
    summary = "evaluation collects the model's outputs on the device"
    words = ("no_grad", "inference_mode", *_BATCH_ENDS)
    help = "append output.cpu(), or reduce it to what is needed first"

    def concerns(self, outline: ast.Module) -> bool:
        """Only an append in a loop can matter, where something is named like a loader."""
        loops: list[ast.For | ast.While] = outline_nodes_of(outline, ast.For, ast.While)
        return (
            any(_files(loop) for loop in loops) or _may_collect(outline) or _is_called_back(outline)
        )

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each append in a loop over a loader under no_grad, and at slots of dicts."""
        for use, name in _slots(module.facts.facts):
            yield self.hit(use.at, f"each turn's `{name}` stays on the device", confidence="medium")
        for function in module.functions:
            if function.name.value in _BATCH_ENDS and not _step_moves(module, function):
                for kept in _kept_by_callback(module, function):
                    message = "each batch's output stays on the device until the run ends"
                    yield self.hit(kept, message, confidence="medium")
        outline = syntax.outline(module.source)
        for call in module.calls if outline is None or _may_collect(outline) else ():
            loop = module.loop_of(call)
            if loop is None or not _appends_to_local(module, call, loop):
                continue
            outputs = _outputs(module, loop)
            if not shape.gradients_off(module, call) and not _made_without(module, call, loop):
                continue
            if not _over_batches(module, loop) and not _decodes(loop):
                continue
            if not _is_output(module, call.args[0].value, outputs) or _moved_later(module, call):
                continue
            if not _is_wanted_there(module, call):
                told = "each batch's output stays on the device until the loop ends"
                unknown = _is_of_unknown_kind(module, call, loop)
                yield self.hit(call, told, confidence="low" if unknown else "high")


def _is_of_unknown_kind(module: Module, call: cst.Call, loop: cst.CSTNode) -> bool:
    """Whether a list is what was given, or may have been: of arrays or records, for all we know."""
    value = call.args[0].value
    if not isinstance(value, cst.Name):
        return False
    asked = f"isinstance({value.value}, " in module.code(loop)
    return asked or shape.last_name(call) == "extend"


def _may_collect(outline: ast.Module) -> bool:
    """Whether a loop appends, in a file that names a loader or decodes."""
    loops: list[ast.For | ast.While] = outline_nodes_of(outline, ast.For, ast.While)
    return any(map(_appends, loops)) and any(
        shape.named_like_loader(name)
        or name in (*_BATCHES, "range", "trange")
        or _DECODES.search(f".{name}")
        for name in map(_name, outline_nodes(outline))
    )


def _is_called_back(outline: ast.Module) -> bool:
    functions = outline_nodes_of(outline, ast.FunctionDef)
    return any(function.name in _BATCH_ENDS for function in functions)


def _kept_by_callback(module: Module, function: cst.FunctionDef) -> Iterator[cst.Call]:
    """Yield where a callback adds what it is given to a list of its own, as it is."""
    names = set(_GIVEN) & set(shape.parameter_names(function))
    if _moves_a_part(module, function, names):
        return  # who moves a part knows what the others are: names, labels
    for node in shape.own_nodes(function):
        match node:
            case cst.Assign(value=value, targets=targets):
                bound = {name for t in targets for name in shape.target_names(t.target)}
                if _is_output(module, value, names):
                    names |= bound
                elif _LEAVES.search(module.code(value)):
                    names -= bound
            case cst.Call(
                func=cst.Attribute(value=holder, attr=cst.Name(value="append" | "extend")),
                args=[cst.Arg(value=value)],
            ) if _is_output(module, value, names) and _is_on_self(holder):
                if not _is_for_some(module, node):
                    yield node


def _moves_a_part(module: Module, function: cst.FunctionDef, given: set[str]) -> bool:
    """Whether it is taken apart, and a part moved: `a, names = prediction; keep(a.cpu())`."""
    parts = {
        name
        for node in shape.own_nodes(function)
        if isinstance(node, cst.Assign) and dotted(node.value) in given
        for target in node.targets
        if isinstance(target.target, cst.Tuple)
        for name in shape.target_names(target.target)
    }
    moved = (n for n in shape.own_nodes(function) if isinstance(n, cst.Call))
    return any(shape.last_name(n) == "cpu" and parts & _roots(n) for n in moved)


def _roots(node: cst.CSTNode) -> set[str]:
    return {each.value for each in walk(node) if isinstance(each, cst.Name)}


def _step_moves(module: Module, function: cst.FunctionDef) -> bool:
    """Whether the object's own step, whose outputs these are, has detached and moved them."""
    member = module.member_of(function)
    kind = function.name.value.removeprefix("on_").removesuffix("_batch_end")
    for each in member.file.lineage(member) if member is not None else ():
        index = each.facts.methods.get(f"{kind}_step")
        if index is not None:
            inner = (each.file.own_method(call) for call in each.file.facts.calls_in(index))
            steps = [(each.file, index), *(own for own in inner if own is not None)]
            return any(_moves(c) for home, at in steps for c in home.facts.calls_in(at))
    return False


def _moves(call: Call) -> bool:
    """`x.cpu()`, `x.detach().to(device)`."""
    detached = call.receiver is not None and call.receiver.text.endswith(".detach")
    return call.method == "cpu" or (call.method == "to" and detached)


_LEAVES = re.compile(r"cpu|item\(|numpy|tolist|len\(")


def _is_on_self(holder: cst.BaseExpression) -> bool:
    while isinstance(holder, cst.Subscript):
        holder = holder.value
    return dotted(holder).startswith("self.")


def _is_for_some(module: Module, node: cst.CSTNode) -> bool:
    """Whether only some batches are kept: the first, or until there are enough."""
    for above in module.ancestors(node):
        if isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.If) and _SOME.search(module.code(above.test)):
            return True
    return False


_SOME = re.compile(r"len\(|batch_idx|count|num_|max|<|>")


def _slots(facts: FileFacts) -> Iterator[tuple[AttributeEffect, str]]:
    """Yield where a loop files a layer's output, made without gradients, under a key."""
    for use in facts.local_uses:
        value = use.value
        if use.role != "slot" or use.how != "[]" or not use.loops or value is None:
            continue
        if value.kind in ("name", "item") and use.key is not None and use.key.kind == "name":
            for call in facts.calls_in(use.function):
                if call.bound == value.text and call.loops and _made_by_layer(call):
                    yield use, value.text


def _made_by_layer(call: Call) -> bool:
    off = any("no_grad" in each or "inference_mode" in each for each in call.managers)
    return off and re.search(r"(^|[._])(model|net|layer|block|vae|unet)$", call.spelled) is not None


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return ""


def _appends(loop: ast.For | ast.While) -> bool:
    for node in outline_walk(loop):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr="append" | "extend"), args=[_]):
                return True
    return False


def _files(loop: ast.For | ast.While) -> bool:
    """Whether the loop puts something under a key: `outputs[index] = output`."""
    for node in outline_walk(loop):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(), slice=ast.Name())]):
                return True
    return False


def _appends_to_local(module: Module, call: cst.Call, loop: LoopNode) -> bool:
    """`name.append(x)`, to a list made empty in the same function, outside the loop."""
    match call:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=attr), args=[_]):
            function = module.function_of(call)
            if attr.value not in ("append", "extend") or function is None:
                return False
            before = takewhile(lambda node: node is not loop, shape.own_nodes(function))
            made = [node for node in before if shape.binds(node, name)]
            if len(made) != 1 or any(shape.binds(node, name) for node in walk(loop.body)):
                return False
            return growth.starts_empty(shape.given(made[0], name))
    return False


def _made_without(module: Module, call: cst.Call, loop: LoopNode) -> bool:
    """Whether what is added was bound in the loop, and always without gradients."""
    value = call.args[0].value
    if not isinstance(value, cst.Name):
        return False
    made = [node for node in shape.own_nodes(loop.body) if shape.binds(node, value.value)]
    return bool(made) and all(shape.gradients_off(module, node) for node in made)


def _over_batches(module: Module, loop: LoopNode) -> bool:
    if not isinstance(loop, cst.For):
        return False
    function = module.function_of(loop)
    if _in_steps_of_a_batch(loop):
        return True
    return any(
        shape.loader_like(module, node, function) or shape.last_name(node) in _BATCHES
        for node in walk(loop.iter)
        if isinstance(node, (cst.Name, cst.Attribute, cst.Call))
    )


def _in_steps_of_a_batch(loop: cst.For) -> bool:
    """`for start in range(0, len(texts), batch_size)`."""
    for node in walk(loop.iter):
        match node:
            case cst.Call(func=func, args=[_, _, cst.Arg(value=step)]) if shape.last_name(func) in (
                "range",
                "trange",
            ):
                return _BATCH.search(shape.last_name(step)) is not None
    return False


_BATCH = re.compile(r"batch|(^|_)bs$", re.IGNORECASE)


def _decodes(loop: LoopNode) -> bool:
    """Whether each turn decodes images or frames: the largest outputs there are."""
    return any(
        isinstance(node, cst.Call) and _DECODES.search(dotted(node.func)) is not None
        for node in shape.own_nodes(loop.body)
    )


_DECODES = re.compile(r"(^|[._])(decode_vae|decode_latents|vae\.decode)$")
_BATCHES = ("batches", "data_iter", "test_iter", "val_iter", "eval_iter", "data_iterator")


def _outputs(module: Module, loop: LoopNode) -> set[str]:
    """The names that hold this turn's batch, or the model's result for it, on the device."""
    names: set[str] = set()
    for node in shape.own_nodes(loop.body):
        if not isinstance(node, cst.Assign):
            continue
        bound = {name for t in node.targets for name in shape.target_names(t.target)}
        if _is_output(module, node.value, names) or _put_on_device(node.value):
            names |= bound
        else:
            names -= bound
    return names


def _is_output(module: Module, value: cst.BaseExpression, names: set[str]) -> bool:
    """The model's result, or a slot, an attribute or a reshaped, detached version of it."""
    match value:
        case cst.Name():
            return value.value in names
        case cst.Subscript() | cst.Attribute():
            return _is_output(module, value.value, names)
        case cst.BinaryOperation():
            return _is_output(module, value.left, names) or _is_output(module, value.right, names)
        case cst.Call(func=cst.Attribute(value=inner, attr=attr)) if attr.value in shape.api(
            "keeps-device"
        ) and not module.qualified(value.func):
            return _is_output(module, inner, names)
        case cst.Call() if module.qualified(value.func).startswith("torch."):
            kept = shape.last_name(value) in shape.api("keeps-device")
            return kept and any(_is_output(module, arg.value, names) for arg in value.args[:1])
        case cst.Call():
            spelled = dotted(value.func)
            known = _MODEL.search(spelled) or _DECODES.search(spelled)
            return known is not None and not module.qualified(value.func)
    return False


# `model(x)`, `self.encoder(x)`, `clip_model.encode_image(x)`, `self(x)`
_MODEL = Pattern(
    r"(^|[._])(<networks>|<network_parts>|module|extractor)"
    r"(\.forward\w*|\.module|\.encode\w*|\.predict|\.get_\w*features)?$|^self(\.forward)?$"
)


def _put_on_device(value: cst.BaseExpression) -> bool:
    """`images.to(device)` or `.cuda()`; not `.to("cpu")`, not `.to(torch.float16)`."""
    match value:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="cuda"))):
            return True
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(value=place), *_]
        ):
            return dotted(place).rpartition(".")[2] == "device"
    return False


def _moved_later(module: Module, call: cst.Call) -> bool:
    """The list is emptied, or its entries are moved, inside the loop."""
    assert isinstance(call.func, cst.Attribute)
    name = dotted(call.func.value)
    loop = module.loop_of(call)
    assert loop is not None
    for node in shape.own_nodes(loop.body):
        match node:
            case cst.Assign() if any(name in shape.target_names(t.target) for t in node.targets):
                return True
            case cst.Call(func=cst.Attribute(value=cst.Name(value=holder), attr=attr)):
                if holder == name and attr.value in ("clear", "pop"):
                    return True
    return False


def _is_wanted_there(module: Module, call: cst.Call) -> bool:
    """Whether all of it is joined on the device, and stays: a bank of features to compare with."""
    assert isinstance(call.func, cst.Attribute)
    function, name = module.function_of(call), dotted(call.func.value)
    if function is None:
        return False
    joined = [
        statement
        for join in module.calls_of("torch.cat", "torch.stack", "torch.concat")
        if module.function_of(join) is function and join.args
        if dotted(join.args[0].value) == name
        for statement in [module.statement_of(join)]
        if isinstance(statement, cst.Assign)
    ]
    code = module.code(function.body)
    names = {dotted(target.target) for each in joined for target in each.targets}
    leaves = any(_LEAVES.search(module.code(each.value)) for each in joined)
    leaves |= any(re.search(_LEFT.format(re.escape(each)), code) for each in names)
    return bool(joined) and all(names) and not leaves


# `all.cpu()`, `all[:n].numpy()`, and a result that somebody else may move
_LEFT = r"\b{0}(\[[^\]]*\])*\.(detach\(\)\.)?(cpu|numpy|item|tolist)|\breturn\b.*\b{0}\b"
