"""An autograd.Function that hangs its own output on ctx instead of saving it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class OutputOnCtx(Rule):
    """forward stores a tensor on ctx that it also returns: output -> node -> ctx -> output."""

    code = "LK113"
    proof = (
        "static only: the collector frees the cycle in the end, so a run sees garbage, not growth"
    )
    summary = "an autograd.Function keeps its own output on ctx: a reference cycle"
    help = "use ctx.save_for_backward(output); autograd breaks the cycle for saved tensors"
    words = ("autograd",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the forward of each autograd.Function."""
        for node in module.classes:
            if "torch.autograd.Function" not in module.bases(node):
                continue
            forward = module.methods(node).get("forward")
            names = syntax.parameters(forward) if forward is not None else []
            if forward is not None and names:
                yield from self._stores(forward, names[0].name.value)

    def _stores(self, forward: cst.FunctionDef, context: str) -> Iterator[Hit]:
        returned = _returned_names(forward)
        for node in syntax.walk(forward.body):
            match node:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value=holder)))],
                    value=cst.Name(value=stored),
                ) if holder == context and stored in returned:
                    yield self.hit(
                        node,
                        f"`{stored}` is returned and kept on `{context}`: a cycle",
                        confidence="high" if _is_tensor(forward, stored) else "low",
                    )


def _returned_names(forward: cst.FunctionDef) -> set[str]:
    """Name what forward returns as such, inputs that are handed through unchanged left out."""
    bound = _bound_names(forward)
    found: set[str] = set()
    for node in syntax.walk(forward.body):
        match node:
            case cst.Return(value=cst.Name(value=name)):
                found.add(name)
            case cst.Return(value=cst.Tuple(elements=elements)):
                found |= {e.value.value for e in elements if isinstance(e.value, cst.Name)}
    found &= bound
    return found | _parts_of(forward, found)


def _parts_of(forward: cst.FunctionDef, wholes: set[str]) -> set[str]:
    """Name what these are unpacked into: `time, state = answer`, where `answer` is returned."""
    found: set[str] = set()
    for node in syntax.walk(forward.body):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))],
                value=cst.Name(value=whole),
            ) if whole in wholes:
                found |= {e.value.value for e in elements if isinstance(e.value, cst.Name)}
    return found


def _is_tensor(forward: cst.FunctionDef, name: str) -> bool:
    """Whether it is the whole result of something, or used as a tensor is.

    One of several things that a call gives may be a handle, which autograd hands on as it is.
    """
    for node in syntax.walk(forward.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=bound))]):
                if bound == name:
                    return True
            case cst.Attribute(value=cst.Name(value=used)) if used == name:
                return True
            case cst.BinaryOperation(left=left, right=right):
                if any(isinstance(side, cst.Name) and side.value == name for side in (left, right)):
                    return True
    return False


def _bound_names(forward: cst.FunctionDef) -> set[str]:
    """Name what forward itself computes by an expression, sizes and flags left out."""
    found: set[str] = set()
    for node in syntax.walk(forward.body):
        match node:
            case cst.Assign(targets=targets, value=cst.Call() | cst.BinaryOperation()):
                for target in targets:
                    if isinstance(target.target, cst.Name):
                        found.add(target.target.value)
                    elif isinstance(target.target, cst.Tuple):
                        parts = (e.value for e in target.target.elements)
                        found |= {p.value for p in parts if isinstance(p, cst.Name)}
    return found
