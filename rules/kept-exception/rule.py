"""except ... as e: self.error = e. The traceback keeps the locals of every frame it passed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import growth, shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes, walk


class KeptException(Rule):
    """Caught exceptions that are bound to something that outlives the handler."""

    code = "LK306"
    summary = "a caught exception is kept, and with it every frame of its traceback"
    help = "keep str(error), or error.with_traceback(None)"
    words = ("except",)
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a handler that assigns or appends the very exception can matter."""
        for handler in outline_nodes(outline):
            if isinstance(handler, ast.ExceptHandler) and handler.name:
                for node in ast.walk(handler):
                    match node:
                        case ast.Assign(value=ast.Name(id=name)) if name == handler.name:
                            return True
                        case ast.Call(func=ast.Attribute(attr="append")):
                            return True
        return False

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each handler does with the exception it names."""
        if "torch" not in module.source:
            return
        for handler in module.nodes(cst.ExceptHandler):
            if handler.name is None or not isinstance(handler.name.name, cst.Name):
                continue
            error = handler.name.name.value
            for node in shape.own_nodes(handler.body):
                kept = _kept_as(module, node, error)
                if kept and not _looked_after(module, kept, handler, error):
                    yield self.hit(node, f"`{kept}` keeps the locals of every frame that failed")


def _kept_as(module: Module, node: cst.CSTNode, error: str) -> str:
    """The last word of the attribute, module-level name or container that gets the exception."""
    match node:
        case cst.Assign(value=cst.Name(value=value)) if value == error:
            for target in node.targets:
                if _outlives(module, target.target):
                    return shape.last_name(target.target)
        case cst.Call(
            func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
            args=[cst.Arg(value=kept)],
        ) if _is_it(kept, error) and _outlives(module, holder):
            return shape.last_name(holder)
    return ""


def _is_it(value: cst.BaseExpression, error: str) -> bool:
    if isinstance(value, cst.Tuple):
        return any(_is_it(element.value, error) for element in value.elements)
    return isinstance(value, cst.Name) and value.value == error


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


def _looked_after(module: Module, kept: str, handler: cst.ExceptHandler, error: str) -> bool:
    """It is raised again, chained, dropped, or stripped of its traceback somewhere in the file."""
    if any("traceback" in module.code(n) for n in walk(handler.body) if isinstance(n, cst.Call)):
        return True
    for use in growth.uses(module, kept):
        if use.role == "drop" or (
            module.enclosing(use.node, cst.Raise) and _raised(module, use.node)
        ):
            return True
        if use.role == "bind" and _replaced(module, use.node, handler):
            return True
        if use.role == "read" and isinstance(module.parent(use.node), (cst.Return, cst.Arg)):
            return True
    return False


def _raised(module: Module, node: cst.CSTNode) -> bool:
    """`raise kept`, `raise X from kept`, not `raise X(f"... {kept}")`."""
    above = module.parent(node)
    while isinstance(above, (cst.Subscript, cst.From)):
        above = module.parent(above)
    return isinstance(above, cst.Raise)


def _replaced(module: Module, node: cst.CSTNode, handler: cst.ExceptHandler) -> bool:
    """Bound anew by a function: not where it is caught, nor where the object is made."""
    if module.function_of(node) is None or _within(module, node, handler):
        return False
    return not _in_constructor(module, node)


def _within(module: Module, node: cst.CSTNode, around: cst.CSTNode) -> bool:
    return any(above is around for above in module.ancestors(node))


def _in_constructor(module: Module, node: cst.CSTNode) -> bool:
    function = module.function_of(node)
    return function is not None and function.name.value == "__init__"
