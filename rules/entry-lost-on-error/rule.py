"""An entry is popped after a call that can raise, and nothing pops it when it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes_of, outline_walk


class EntryLostOnError(Rule):
    """Tables of pending work whose entries go on success only."""

    code = "LK311"
    summary = "a pending entry is taken out on success only, so each failure leaves one behind"
    help = "pop the entry in a finally block"
    words = (".pop(",)
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a try with handlers and no finally, in whose body something is popped, matters."""
        tries = outline_nodes_of(outline, ast.Try)
        return any(_pops_in_body(node) for node in tries if node.handlers and not node.finalbody)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each try whose body pops from a long-lived dict after some other call."""
        for attempt in module.nodes(cst.Try):
            if attempt.finalbody is not None or not attempt.handlers:
                continue
            pop = _first_pop(module, attempt)
            if pop is None or not _work_before(attempt.body, pop) or _for_the_pop(attempt):
                continue
            if not (_popped_in_handlers(attempt, _table(pop)) or _emptied(module, _table(pop))):
                yield self.hit(pop, f"the entry of `{_table(pop)}` stays when the work raises")


def _pops_in_body(attempt: ast.Try) -> bool:
    within = (node for statement in attempt.body for node in outline_walk(statement))
    return any(isinstance(node, ast.Attribute) and node.attr == "pop" for node in within)


def _first_pop(module: Module, attempt: cst.Try) -> cst.Call | None:
    for node in shape.own_nodes(attempt.body):
        popped = _table(node) if isinstance(node, cst.Call) and _pops_by_key(node) else ""
        if popped in growth.module_containers(module):
            assert isinstance(node, cst.Call)
            return node
    return None


def _pops_by_key(call: cst.Call) -> bool:
    return (
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "pop"
        and bool(call.args)
        and isinstance(call.args[0].value, (cst.Name, cst.Attribute))
    )


def _table(pop: cst.Call) -> str:
    assert isinstance(pop.func, cst.Attribute)
    return dotted(pop.func.value)


def _work_before(body: cst.BaseSuite, pop: cst.Call) -> bool:
    """A statement of its own that calls something comes first."""
    for node in shape.own_nodes(body):
        if node is pop:
            return False
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            return shape.last_name(node.value) not in shape.api("light-calls")
    return False


def _for_the_pop(attempt: cst.Try) -> bool:
    """The handlers wait for a missing entry, which is what the pop itself raises."""
    caught = (dotted(handler.type) if handler.type else "" for handler in attempt.handlers)
    return all(name in ("KeyError", "LookupError") for name in caught)


def _emptied(module: Module, table: str) -> bool:
    """Some other function empties the table as a whole, as after an error."""
    for node in [*module.calls, *module.nodes(cst.Assign)]:
        match node:
            case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="clear"))):
                if dotted(holder) == table:
                    return True
            case cst.Assign() if module.function_of(node) is not None:
                if any(dotted(target.target) == table for target in node.targets):
                    return True
    return False


def _popped_in_handlers(attempt: cst.Try, table: str) -> bool:
    return any(shape.mentions(handler.body, table) for handler in attempt.handlers)
