"""except ... as e: self.error = e. The traceback keeps the locals of every frame it passed."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes_of, outline_walk, walk

_Around = cst.ExceptHandler | cst.FunctionDef


class KeptException(Rule):
    """Caught exceptions that are bound to something that outlives the handler."""

    code = "LK306"
    summary = "a caught exception is kept, and with it every frame of its traceback"
    help = "keep str(error), or error.with_traceback(None)"
    words = ("except", "exc_info")
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a handler that assigns or appends the very exception can matter, or exc_info."""
        if any(node.attr == "exc_info" for node in outline_nodes_of(outline, ast.Attribute)):
            return True
        handlers = outline_nodes_of(outline, ast.ExceptHandler)
        return any(handler.name and _may_keep(handler) for handler in handlers)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each handler does with the exception it names, and at sys.exc_info()."""
        if "torch" not in module.source:
            return
        for around, errors in (*_handled(module), *_asked_for(module)):
            for node in shape.own_nodes(around.body):
                kept = _kept_as(module, node, errors)
                if kept and not _looked_after(module, kept, around, node):
                    at_top = module.function_of(node) is None
                    if at_top and _raises_at_end(around):
                        continue  # of a module that fails to be imported nothing stays
                    early = at_top and _may_not_matter(module, kept)
                    yield self.hit(
                        node,
                        f"`{kept}` keeps the locals of every frame that failed",
                        confidence="low" if early else "high",  # those of modules stay anyway
                    )


def _raises_at_end(around: _Around) -> bool:
    """Whether a handler ends in a bare `raise`."""
    last = around.body.body[-1] if around.body.body else None
    return isinstance(last, cst.SimpleStatementLine) and any(
        isinstance(each, cst.Raise) and each.exc is None for each in last.body
    )


def _may_not_matter(module: Module, kept: str) -> bool:
    """Whether the frames are those of modules, which stay, or of who is told of it by an error."""
    if module.facts.is_imported_early():
        return True
    told = any(module.enclosing(use.node, cst.Raise) for use in growth.uses(module, kept))
    return told and module.facts.is_imported()


def _may_keep(handler: ast.ExceptHandler) -> bool:
    for node in outline_walk(handler):
        match node:
            case ast.Assign(value=ast.Name(id=name)) if name == handler.name:
                return True
            case ast.Call(func=ast.Attribute(attr="append")):
                return True
    return False


def _handled(module: Module) -> Iterator[tuple[_Around, frozenset[str]]]:
    """Yield the handlers that name their exception."""
    for handler in module.nodes(cst.ExceptHandler):
        if handler.name is not None and isinstance(handler.name.name, cst.Name):
            yield handler, frozenset({handler.name.name.value})


def _asked_for(module: Module) -> Iterator[tuple[_Around, frozenset[str]]]:
    """Yield the functions that take the exception from the system: `_, error, trace = ...`."""
    for call in module.calls_of("sys.exc_info"):
        function, above = module.function_of(call), module.parent(call)
        if function is not None and isinstance(above, cst.Assign):
            names = {n for t in above.targets for n in shape.target_names(t.target)}
            yield function, frozenset(names - {"_"})


def _kept_as(module: Module, node: cst.CSTNode, errors: Collection[str]) -> str:
    """The last word of the attribute, module-level name or container that gets the exception."""
    match node:
        case cst.Assign(value=cst.Name(value=value)) if value in errors:
            for target in node.targets:
                if _outlives(module, target.target):
                    return shape.last_name(target.target)
        case cst.Call(
            func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
            args=[cst.Arg(value=kept)],
        ) if _is_it(kept, errors) and _outlives(module, holder):
            return shape.last_name(holder)
    return ""


def _is_it(value: cst.BaseExpression, errors: Collection[str]) -> bool:
    if isinstance(value, cst.Tuple):
        return any(_is_it(element.value, errors) for element in value.elements)
    return isinstance(value, cst.Name) and value.value in errors


def _outlives(module: Module, target: cst.BaseExpression) -> bool:
    spelled = dotted(target)
    if spelled.startswith("self.") and spelled.count(".") == 1:
        return True
    if not isinstance(target, cst.Name):
        return False
    function = module.function_of(target)
    if function is None:
        return module.class_of(target) is None
    if spelled in growth.module_containers(module):
        return True
    return any(
        item.name.value == spelled
        for node in shape.own_nodes(function)
        if isinstance(node, cst.Global)
        for item in node.names
    )


def _looked_after(module: Module, kept: str, around: _Around, node: cst.CSTNode) -> bool:
    """It is raised again, chained, dropped, or stripped of its traceback somewhere in the file.

    A list that is cut where the exception is added keeps its last entries all the same.
    """
    if any("traceback" in module.code(n) for n in walk(around.body) if isinstance(n, cst.Call)):
        return True
    function = module.function_of(node)
    for use in growth.uses(module, kept):
        cut = function is not None and module.function_of(use.node) is function
        if (use.role == "drop" and not cut) or (
            module.enclosing(use.node, cst.Raise) and _raised(module, use.node)
        ):
            return True
        if use.role == "bind" and _replaced(module, use.node, around):
            return True
        if use.role == "read" and isinstance(module.parent(use.node), (cst.Return, cst.Arg)):
            return True
    return False


def _raised(module: Module, node: cst.CSTNode) -> bool:
    """`raise kept`, `raise X from kept`, not `raise X(f"... {kept}")`."""
    above = module.parent(node)
    while isinstance(above, (cst.Subscript, cst.From, cst.BooleanOperation, cst.IfExp)):
        above = module.parent(above)
    return isinstance(above, cst.Raise)


def _replaced(module: Module, node: cst.CSTNode, around: _Around) -> bool:
    """Bound anew by a function: not where it is caught, nor where the object is made."""
    if module.function_of(node) is None or _within(module, node, around):
        return False
    return not _in_constructor(module, node)


def _within(module: Module, node: cst.CSTNode, around: cst.CSTNode) -> bool:
    return any(above is around for above in module.ancestors(node))


def _in_constructor(module: Module, node: cst.CSTNode) -> bool:
    function = module.function_of(node)
    return function is not None and function.name.value == "__init__"
