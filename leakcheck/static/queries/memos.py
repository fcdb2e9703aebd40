"""Hand-made caches: a dict that is looked up under a key and filled under the same key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from leakcheck.source.words import ends_in
from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.syntax import dotted, parameters, walk

_REGISTERS = re.compile(r"_*(add|register)(_|$)")  # its callers say what is to be kept


@dataclass(frozen=True, slots=True)
class Memo:
    """A store into a cache: its name, the key as written, and the storing statement."""

    name: str
    key: str
    node: cst.CSTNode


def memos(module: Module) -> Iterator[Memo]:
    """Yield the stores that fill a cache under a key that comes from the data."""
    for assign in module.nodes(cst.Assign):
        function = module.function_of(assign)
        if function is None or len(assign.targets) != 1 or _REGISTERS.match(function.name.value):
            continue
        match assign.targets[0].target:
            case cst.Subscript(
                value=holder, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]
            ):
                name = _outliving(module, holder, assign)
                if (
                    name
                    and _made_for(assign, key, function)
                    and _from_data(module, key, function)
                    and _looked_up(module, function, holder, key)
                    and not _has_switch(function, name)
                ):
                    yield Memo(name, module.code(key), assign)


def _outliving(module: Module, holder: cst.BaseExpression, near: cst.CSTNode) -> str:
    """The name of a dict that was made empty at module level, in a class or on self."""
    spelled = dotted(holder)
    if spelled in growth.module_containers(module):
        return spelled
    owner = module.class_of(near)
    if owner is None or not spelled.startswith(("self.", "cls.", f"{owner.name.value}.")):
        return ""
    word = spelled.partition(".")[2]
    made = growth.class_containers(module, owner).get(word)
    return word if made is not None and not _made_anew(module, owner, made) else ""


def _made_anew(module: Module, owner: cst.ClassDef, made: cst.CSTNode) -> bool:
    """Say whether each object takes the place of the one before it: the tree of each game."""
    if module.enclosing(made, cst.FunctionDef, cst.ClassDef) is owner:
        return False  # it belongs to the class, and outlives them all
    calls = [call for call in module.calls if dotted(call.func) == owner.name.value]
    return bool(calls) and all(_takes_a_name_in_a_loop(module, call) for call in calls)


def _takes_a_name_in_a_loop(module: Module, call: cst.Call) -> bool:
    around = module.parent(call)
    named = isinstance(around, cst.Assign) and all(
        isinstance(each.target, cst.Name) for each in around.targets
    )
    return named and module.loop_of(call) is not None


def _looked_up(
    module: Module, function: cst.FunctionDef, holder: cst.BaseExpression, key: cst.BaseExpression
) -> bool:
    """`key in D`, `D.get(key)` or `try: D[key]` in the same function: so it is a cache."""
    dict_code, key_code = module.code(holder), module.code(key)
    for node in walk(function.body):
        match node:
            case cst.ComparisonTarget(operator=cst.In() | cst.NotIn(), comparator=comparator):
                around = module.parent(node)
                assert isinstance(around, cst.Comparison)
                if module.code(comparator) == dict_code and module.code(around.left) == key_code:
                    return True
            case cst.Call(func=cst.Attribute(value=asked, attr=cst.Name(value="get"))):
                keys = [module.code(arg.value) for arg in node.args[:1]]
                if module.code(asked) == dict_code and keys == [key_code]:
                    return True
    return False


def _has_switch(function: cst.FunctionDef, name: str) -> bool:
    """`if self.use_cache:`: the caller decides on the cache, and knows what it costs.

    Who sets a switch at module level decides for everybody, mostly without being asked.
    """
    chosen = {p.name.value for p in parameters(function)}
    for node in shape.own_nodes(function):
        if isinstance(node, cst.If):
            test = node.test
            if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
                test = test.expression
            holder, _, word = dotted(test).rpartition(".")
            given = holder == "self" or (word in chosen and not holder)
            if given and "cach" in word.lower() and word != name:
                return True
    return False


def _from_data(module: Module, key: cst.BaseExpression, function: cst.FunctionDef) -> bool:
    """A parameter, or an item of one, whose name and annotation do not say "configuration"."""
    if isinstance(key, cst.Call) and dotted(key.func) in ("id", "hash") and key.args:
        key = key.args[0].value
    if isinstance(key, cst.Call) and shape.last_name(key) == "data_ptr":
        return True
    if not isinstance(key, cst.Name) or ends_in(key.value, "configures"):
        return False
    source = shape.origin(module, key, function)
    names = {p.name.value: p for p in parameters(function)}
    if source not in names or ends_in(source.removesuffix("s"), "configures"):
        return False
    return not _plainly_typed(module, names[source])


def _plainly_typed(module: Module, parameter: cst.Param) -> bool:
    if parameter.annotation is None:
        return False
    written = parameter.annotation.annotation
    kinds = {
        module.qualified(n) or dotted(n)
        for n in walk(written)
        if isinstance(n, (cst.Name, cst.Attribute))
    }
    return bool(kinds & shape.api("plain-key-types"))


def _made_for(assign: cst.Assign, key: cst.BaseExpression, function: cst.FunctionDef) -> bool:
    """The value is worked out for this key: a call on it, here or where a local name was bound.

    `word_ids[word] = len(word_ids)` numbers a vocabulary, whose entries are small and wanted.
    So are those of a tally.
    """
    value = assign.value
    if _is_tally(assign) or _adds_to_entry(assign):
        return False
    names = {node.value for node in walk(key) if isinstance(node, cst.Name)}
    if not isinstance(value, cst.Name):
        return _works_on(value, names)
    for node in shape.own_nodes(function):
        if shape.binds(node, value.value):
            assert isinstance(node, cst.Assign)
            if _works_on(node.value, names):
                return True
        if isinstance(node, cst.For):  # for text, vector in zip(texts, encode(texts))
            together = shape.target_names(node.target)
            if value.value in together and names & set(together):
                return True
    return False


def _adds_to_entry(assign: cst.Assign) -> bool:
    """`seen[key] = join(seen[key], part)`: an entry that grows is no result to look up."""
    slot = assign.targets[0].target
    return any(node.deep_equals(slot) for node in walk(assign.value))


def _is_tally(assign: cst.Assign) -> bool:
    """A number added to the entry's own: `seen[word] = seen.get(word, 0) + 1`."""
    match assign.value, assign.targets[0].target:
        case (
            cst.BinaryOperation(
                left=cst.Call(
                    func=cst.Attribute(value=asked, attr=cst.Name(value="get")),
                    args=[cst.Arg(), cst.Arg(value=cst.Integer() | cst.Float())],
                ),
                right=cst.Integer() | cst.Float(),
            ),
            cst.Subscript(value=holder),
        ):
            return asked.deep_equals(holder)
    return False


def _works_on(value: cst.BaseExpression, names: set[str]) -> bool:
    used = any(isinstance(node, cst.Name) and node.value in names for node in walk(value))
    return used and not isinstance(value, (cst.Integer, cst.Name))
