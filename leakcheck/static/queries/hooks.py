"""Hooks on modules and tensors: who registers them where, on what, and what they keep.

Only method names such as `register_forward_hook` are looked for: nothing else is called that.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.syntax import argument, children, dotted, parameters, walk

_NO_TENSOR = frozenset(["shape", "dtype", "device", "ndim"])
_BUILT_IN = frozenset(dir(builtins)) - {"setattr"}  # which keeps what it is given
Hook = cst.FunctionDef | cst.Lambda


@dataclass(frozen=True, slots=True)
class Store:
    """A place in a hook that keeps a tensor: what is written, under which last word."""

    node: cst.CSTNode
    target: cst.BaseExpression
    word: str
    grows: bool


def registrations(module: Module, group: str = "module-hooks") -> Iterator[cst.Call]:
    """Yield the calls that put a hook on something."""
    names = shape.api(group)
    for call in module.calls:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in names and call.args:
            yield call


def handle_dropped(module: Module, call: cst.Call) -> bool:
    """Tell whether the returned handle goes nowhere: not stored, passed, returned or used."""
    above = module.parent(call)
    if isinstance(above, cst.Expr):
        return True
    function = module.function_of(call)
    if not isinstance(above, cst.Assign) or function is None or len(above.targets) != 1:
        return _appended_for_nothing(module, call)
    name = above.targets[0].target
    if dotted(name).startswith("self."):
        return _never_read(module, shape.last_name(name))
    if not isinstance(name, cst.Name):
        return False
    used = [n for n in walk(function.body) if isinstance(n, cst.Name) and n.value == name.value]
    return len(used) == 1


def _appended_for_nothing(module: Module, call: cst.Call) -> bool:
    """`self.handles.append(<call>)` where nothing ever looks into the list."""
    arg = module.parent(call)
    append = module.parent(arg) if isinstance(arg, cst.Arg) else None
    match append:
        case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="append"))):
            return dotted(holder).startswith("self.") and _never_read(
                module, shape.last_name(holder)
            )
    return False


def _never_read(module: Module, word: str) -> bool:
    roles = {use.role for use in growth.uses(module, word)}
    return roles <= {"bind", "grow"} and not growth.named_in_text(module, word)


def runs_what_it_hooks(module: Module, call: cst.Call) -> bool:
    """Tell whether the function that adds the hook also calls the model it was handed."""
    function = module.function_of(call)
    if function is None or function.name.value == "__init__":
        return False
    assert isinstance(call.func, cst.Attribute)
    model = shape.origin(module, call.func.value, function)
    if not model.startswith("self.") and model not in shape.parameter_names(function):
        return False
    if shape.has_base(module, module.class_of(call), "module-classes"):
        return False
    return any(
        isinstance(node, cst.Call) and dotted(node.func) in (model, f"{model}.forward")
        for node in shape.own_nodes(function)
    )


def foreign(module: Module, call: cst.Call) -> bool:
    """Tell whether the hook is put on a module that the registering object was only handed.

    A class that is a module itself owns what it wraps; so does a function, which is set-up code.
    One hook that holds nothing of the object costs nothing, one on each layer does.
    """
    method = shape.method_of(module, call)
    owner = module.class_of(call)
    if method is None or owner is None or shape.has_base(module, owner, "module-classes"):
        return False
    holds = holds_self(module, hook_argument(call), call)
    if not holds and module.loop_of(call) is None:
        return False
    assert isinstance(call.func, cst.Attribute)
    source = shape.origin(module, call.func.value, module.function_of(call))
    if source.startswith("self."):
        return _handed_in(module, owner, source)
    if source not in shape.parameter_names(method):
        return False
    return method.name.value == "__init__" or holds


def _handed_in(module: Module, owner: cst.ClassDef, attribute: str) -> bool:
    for node in walk(owner.body):
        match node:
            case cst.Assign(value=cst.Name(value=name)) if any(
                dotted(target.target) == attribute for target in node.targets
            ):
                function = module.function_of(node)
                if function is not None and name in shape.parameter_names(function):
                    return True
    return False


def hook_argument(call: cst.Call) -> cst.BaseExpression:
    """Return the expression that is registered as the hook."""
    found = argument(call, "hook", 0)
    return found.value if found is not None else call.args[0].value


def holds_self(module: Module, hook: cst.BaseExpression, near: cst.CSTNode) -> bool:
    """Tell whether a hook keeps `self` alive: a bound method, or a closure or partial over it."""
    if "weak" in module.code(hook).lower():
        return False
    if isinstance(hook, cst.Name):
        nested = _nested_function(module, near, hook.value)
        if nested is not None:
            return _closes_over_self(nested)
        given = _made_here(module, near, hook.value)
        return given is not None and holds_self(module, given, near)
    if isinstance(hook, cst.Lambda):
        return _closes_over_self(hook)
    if isinstance(hook, cst.Call) and dotted(hook.func).startswith("self."):
        return any(_closes_over_self(f) for f in _made_by(module, hook))
    if isinstance(hook, cst.Call):
        if shape.last_name(hook) != "partial":
            return False
        return any(_is_self_or_bound(module, arg.value) for arg in hook.args)
    return _is_self_or_bound(module, hook)


def _made_here(module: Module, near: cst.CSTNode, name: str) -> cst.Call | cst.Lambda | None:
    """Return the partial or lambda that a local name is given: `wrapper = partial(f, self)`."""
    given = (bound.value for bound in module.facts.facts.bindings if bound.name == name)
    if not any(each.kind == "lambda" or each.text.endswith("partial") for each in given):
        return None  # the facts are at hand, and a walk is not cheap
    function = module.function_of(near)
    for node in shape.own_nodes(function) if function is not None else ():
        value = shape.given(node, name)
        if isinstance(value, cst.Lambda):
            return value
        if isinstance(value, cst.Call) and shape.last_name(value) == "partial":
            return value
    return None


def _is_self_or_bound(module: Module, node: cst.BaseExpression) -> bool:
    """`self`, or `self.f` unless `f` is plainly an attribute or a static method of the class."""
    spelled = dotted(node)
    if spelled == "self":
        return True
    if not spelled.startswith("self.") or spelled.count(".") != 1:
        return False
    owner = module.class_of(node)
    method = module.methods(owner).get(spelled[5:]) if owner is not None else None
    return shape.is_method(method) and not (method is not None and method.decorators)


def _closes_over_self(function: Hook) -> bool:
    own = any(p.name.value == "self" for p in parameters(function))
    if own or any(shape.binds(node, "self") for node in walk(function.body)):
        return False
    return shape.mentions(function.body, "self")


def _nested_function(module: Module, near: cst.CSTNode, name: str) -> cst.FunctionDef | None:
    around = module.function_of(near)
    while around is not None:
        for node in walk(around.body):
            if isinstance(node, cst.FunctionDef) and node.name.value == name:
                return node
        around = module.function_of(around)
    return None


def hook_functions(module: Module, group: str = "module-hooks") -> list[Hook]:
    """List the functions of the module that are registered as hooks, each once."""
    found: dict[int, Hook] = {}
    for call in registrations(module, group):
        found |= {id(function): function for function in functions_behind(module, call)}
    return list(found.values())


def functions_behind(module: Module, call: cst.Call) -> Iterator[Hook]:
    """Yield the functions that a registration puts on something, as far as they are here."""
    hook = hook_argument(call)
    function = module.function_of(call)
    if isinstance(hook, cst.Name) and function is not None:
        given = (shape.given(node, hook.value) for node in shape.own_nodes(function))
        hook = next((each for each in given if isinstance(each, cst.Call)), hook)
    yield from _functions_behind(module, hook)


def _functions_behind(module: Module, hook: cst.BaseExpression) -> Iterator[Hook]:
    match hook:
        case cst.Lambda():
            yield hook
        case cst.Call() if shape.last_name(hook.func) == "partial" and hook.args:
            yield from _functions_behind(module, hook.args[0].value)
        case cst.Call():
            yield from _made_by(module, hook)
        case cst.Name() | cst.Attribute():
            yield from _named(module, shape.last_name(hook))


def _made_by(module: Module, call: cst.Call) -> Iterator[cst.FunctionDef]:
    """The functions inside a function that makes hooks: `register_hook(self.make(name))`."""
    for maker in _named(module, shape.last_name(call.func)):
        yield from (n for n in walk(maker.body) if isinstance(n, cst.FunctionDef))


def _named(module: Module, name: str) -> Iterator[cst.FunctionDef]:
    yield from (f for f in module.functions if f.name.value == name)


def stores(module: Module, hook: Hook) -> Iterator[Store]:
    """Yield where a hook keeps an input, an output or what is made of them, as a tensor."""
    kept = _tensor_names(hook)
    for node in shape.own_nodes(hook):
        match node:
            case cst.Assign(value=value) if _has_tensor(value, kept):
                for target in node.targets:
                    if isinstance(target.target, cst.Attribute):
                        yield Store(node, target.target, target.target.attr.value, False)
            case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name("append"))) if node.args:
                if _has_tensor(node.args[0].value, kept):
                    yield Store(node, holder, shape.last_name(holder), True)


def only_looks(module: Module, hook: Hook) -> bool:
    """Tell whether a hook changes nothing and keeps no tensor: it counts, names or measures.

    It raises nothing, returns nothing, and hands no tensor on but to what Python has built in.
    """
    if isinstance(hook, cst.Lambda):
        return False
    kept = _tensor_names(hook)
    for node in shape.own_nodes(hook):
        match node:
            case cst.Raise() | cst.Yield() | cst.Return(value=cst.BaseExpression()):
                return False
            case cst.Nonlocal() | cst.Global() if kept & {each.name.value for each in node.names}:
                return False
            case cst.Assign(value=value) | cst.AugAssign(value=value) if _has_tensor(value, kept):
                targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else []
                if not targets or not all(map(_is_of_names, targets)):
                    return False
            case cst.Call(func=cst.Name(value=name)) if name in _BUILT_IN:
                continue
            case cst.Call() if any(_has_tensor(arg.value, kept) for arg in node.args):
                return False
    return True


def _is_of_names(target: cst.BaseExpression) -> bool:
    """Whether only local names are bound."""
    if isinstance(target, cst.Tuple):
        return all(_is_of_names(element.value) for element in target.elements)
    return isinstance(target, cst.Name)


def _has_tensor(value: cst.CSTNode, kept: set[str]) -> bool:
    """Whether a tensor is a part of a value, and not only asked for its shape or a number."""
    match value:
        case cst.Name(value=name):
            return name in kept
        case cst.Call() if shape.last_name(value) in shape.api("gives-a-number"):
            return False
        case cst.Attribute(value=inner, attr=cst.Name(value=name)):
            return name not in _NO_TENSOR and _has_tensor(inner, kept)
        case cst.Comparison() | cst.FormattedString():
            return False
        case cst.Arg(value=inner):
            return _has_tensor(inner, kept)
    return any(_has_tensor(child, kept) for child in children(value))


def _tensor_names(hook: Hook) -> set[str]:
    names = shape.parameter_names(hook)
    kept = set(names[1:]) if len(names) > 1 else set(names)
    for node in shape.own_nodes(hook):
        if isinstance(node, cst.Assign) and _has_tensor(node.value, kept):
            kept |= {n for t in node.targets for n in shape.target_names(t.target)}
    return kept


def dropped_only_by_backward(module: Module, word: str) -> bool:
    """Tell whether all that takes entries out of a container runs in a backward pass only."""
    drops = [u for u in growth.uses(module, word) if u.role == "drop"]
    if not drops:
        return False
    backward = {id(f) for f in hook_functions(module, "backward-hooks")}
    names = {f.name.value for f in module.functions if id(f) in backward}
    return all(_runs_in(module, drop.node, backward, names) for drop in drops)


def _runs_in(module: Module, node: cst.CSTNode, hooks: set[int], names: set[str]) -> bool:
    function = module.function_of(node)
    if function is None:
        return False
    if id(function) in hooks:
        return True
    callers = [c for c in module.calls if shape.last_name(c) == function.name.value]
    around = [module.function_of(c) for c in callers]
    return bool(around) and all(f is not None and f.name.value in names for f in around)


def hooking_functions(module: Module) -> set[str]:
    """Name the functions of the module that register module hooks, themselves or by a call."""
    return _reaching(module, {id(c) for c in registrations(module)})


def unhooking_functions(module: Module) -> set[str]:
    """Name the functions of the module that remove handles, themselves or by a call."""
    return _reaching(module, {id(c) for c in removals(module)})


def removals(module: Module) -> Iterator[cst.Call]:
    """Yield the calls of `remove()` without arguments, which is how handles are removed."""
    for call in module.calls:
        if isinstance(call.func, cst.Attribute) and shape.last_name(call) == "remove":
            yield from () if call.args else (call,)


def _reaching(module: Module, calls: set[int]) -> set[str]:
    bodies = {f.name.value: f for f in module.functions}
    reached = {
        name
        for name, f in bodies.items()
        if any(isinstance(n, cst.Call) and id(n) in calls for n in walk(f.body))
    }
    return reached
