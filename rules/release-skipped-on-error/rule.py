"""yield f; f.close(): what stands behind the yield of a context manager is skipped on an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class ReleaseSkippedOnError(Rule):
    """Context managers written as generators that release behind the yield, without a finally."""

    code = "LK613"
    summary = "a context manager releases what it opened, but not when its block raises"
    help = "put the yield into a try block and the release into its finally"
    proof = "static only: CPython ends a pool that is dropped, and only an error leaves one"
    words = ("contextmanager",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each generator that is decorated as a context manager."""
        for function in module.functions:
            if _is_manager(function) and function.name.value != _OF_A_SERVER:
                nodes = list(shape.own_nodes(function))
                for place, node in enumerate(nodes):
                    if isinstance(node, cst.Yield) and not _is_guarded(module, node):
                        yield from self._skipped(module, node, nodes[:place], nodes[place:])

    def _skipped(
        self,
        module: Module,
        node: cst.Yield,
        before: Sequence[cst.CSTNode],
        after: Sequence[cst.CSTNode],
    ) -> Iterator[Hit]:
        opened = _opened(before)
        for call in after:
            name = _released(module, call)
            if name in opened | _members(after, opened) and not _elsewhere(module, node, call):
                told = f"when the block raises, `{module.code(call)}` is not reached"
                yield self.hit(node, told, confidence="medium")
                return


_OF_A_SERVER = "lifespan"  # entered once, and left when the program ends
_ENDS = frozenset(["close", "aclose", "shutdown", "terminate", "kill", "release", "unlink"])
_LIGHT = ("tqdm", "trange", "Progress")


def _is_manager(function: cst.FunctionDef) -> bool:
    names = (dotted(each.decorator).rpartition(".")[2] for each in function.decorators)
    return any(name in ("contextmanager", "asynccontextmanager") for name in names)


def _is_guarded(module: Module, node: cst.CSTNode) -> bool:
    """Whether a try around it has something to do when it raises."""
    for above in module.ancestors(node):
        if isinstance(above, cst.FunctionDef):
            return False
        if isinstance(above, (cst.Try, cst.TryStar)):
            return True
    return False


def _opened(nodes: Sequence[cst.CSTNode]) -> set[str]:
    """Name what the calls before the yield gave."""
    return {
        name
        for node in nodes
        if isinstance(node, cst.Assign) and isinstance(_awaited(node.value), cst.Call)
        if not any(word in shape.last_name(_awaited(node.value)) for word in _LIGHT)
        for target in node.targets
        for name in shape.target_names(target.target)
    }


def _awaited(value: cst.BaseExpression) -> cst.BaseExpression:
    return value.expression if isinstance(value, cst.Await) else value


def _members(nodes: Sequence[cst.CSTNode], opened: set[str]) -> set[str]:
    """Name what a loop behind the yield takes from them: `for worker in workers`."""
    loops = (node for node in nodes if isinstance(node, cst.For) and dotted(node.iter) in opened)
    return {name for loop in loops for name in shape.target_names(loop.target)}


def _released(module: Module, node: cst.CSTNode) -> str:
    """Return the plain name that a call releases: `f.close()`, `plt.close(figure)`."""
    match node:
        case cst.Call(args=[cst.Arg(value=cst.Name(value=name))]) if (
            module.qualified(node.func) == "matplotlib.pyplot.close"
        ):
            return name
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=method))):
            return name if method in _ENDS else ""
    return ""


def _elsewhere(module: Module, node: cst.CSTNode, call: cst.CSTNode) -> bool:
    """Whether the call does not follow the yield, but stands in the other branch of an if.

    Nor where the yield's own branch ends the function: `if lock is None: yield; return`.
    """
    inside = [*module.ancestors(node)]
    around = [id(above) for above in inside]
    for above in module.ancestors(call):
        if id(above) in around:
            ends = map(shape.last_statement, inside[: around.index(id(above))])
            return any(isinstance(each, (cst.Return, cst.Raise)) for each in ends)
        if isinstance(above, cst.Else):
            return True
    return False
