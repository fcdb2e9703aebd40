"""embeddings.cpu() as a statement: the copy is dropped, and the tensor stays where it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import MODULE, Call, Expr
from leakcheck.static.facts.passes import is_called_by_framework, is_differentiated
from leakcheck.static.facts.targets import callee
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline, outline_nodes_of
from leakcheck.static.torch_api import is_learnable_module

_MOVES = frozenset(["cpu", "cuda", "to", "half", "bfloat16"])
_TENSOR = Pattern(r"(^|_)(<tensors>)$")


class ResultThrownAway(Rule):
    """Calls that return a changed tensor, and whose result nobody takes."""

    code = "LK407"
    summary = "a tensor's copy elsewhere, or without its graph, is made and thrown away"
    help = "bind the result: x = x.cpu()"
    default = False
    proof = "static only: what stays is what should have been replaced"
    words = (".detach()", ".cpu()", ".to(", ".cuda()", ".half()")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call of a tensor's method that is a statement of its own."""
        linked = module.facts
        for call in linked.facts.calls:
            if call.fate == "dropped" and call.receiver is not None and _is_lost(linked, call):
                if _is_said_to_be_else(module, call):
                    continue
                what, method = call.receiver.text, call.method
                brief = _is_handed(linked, call)
                given = "..." if call.arguments else ""
                yield self.hit(
                    call.at,
                    f"`{what}.{method}` changes nothing: its result is dropped",
                    help=f"bind the result: {what} = {what}.{method}({given})",
                    confidence="low" if brief else "high",
                )


def _is_handed(linked: Linked, call: Call) -> bool:
    """Whether it is one of several things that a call gave, so that nobody knows what it is.

    What a framework hands to a step is where it should be already.
    """
    name = call.receiver.text if call.receiver is not None else ""
    function = linked.facts.function(call.function)
    if function is not None and (is_called_by_framework(function) or is_differentiated(function)):
        return True
    return any(name in each.unpacked for each in linked.facts.calls_in(call.function))


def _is_said_to_be_else(module: Module, call: Call) -> bool:
    """Whether the parameter's annotation names no tensor: `embedding: nn.Module`, `x: Batch`."""
    name, tree = call.receiver.text if call.receiver is not None else "", outline(module.source)
    functions = outline_nodes_of(tree, ast.FunctionDef) if tree is not None else []
    around = [f for f in functions if f.lineno <= call.at.line <= (f.end_lineno or f.lineno)]
    said = [
        ast.unparse(given.annotation)
        for function in around
        for given in (*function.args.args, *function.args.kwonlyargs)
        if given.arg == name and given.annotation is not None
    ]
    return bool(said) and re.search(r"Tensor|ndarray|Any\b", said[-1]) is None


def _is_lost(linked: Linked, call: Call) -> bool:
    receiver = call.receiver
    if receiver is None or receiver.kind not in ("name", "item") or not receiver.text:
        return False
    if call.method == "detach":
        own = any(
            f.name == "detach" for facts in linked.everywhere("detach") for f in facts.functions
        )
        return (
            not call.arguments and not own and receiver.kind == "name" and _is_tensor(linked, call)
        )
    return call.method in _MOVES and _is_tensor(linked, call) and not _is_so_already(linked, call)


def _is_so_already(linked: Linked, call: Call) -> bool:
    """Whether the tensor is always made as it is asked to be: `torch.zeros(n, dtype=x.dtype)`."""
    wanted = [given.value for given in call.arguments]
    name = call.receiver.text if call.receiver is not None else ""
    made = [each for each in linked.facts.calls_in(call.function) if each.bound == name]
    given = [[argument.value for argument in each.arguments] for each in made]
    return bool(wanted and given) and all(each in values for values in given for each in wanted)


def _is_tensor(linked: Linked, call: Call) -> bool:
    """Whether the name says so, or the function gives it what torch makes."""
    name = call.receiver.text if call.receiver is not None else ""
    here = [b for b in linked.facts.bindings if b.function == call.function and b.name == name]
    if any(b.value.text.startswith(_MAKERS) for b in here):
        return True
    beside = linked.facts.calls_in(call.function)
    around = linked.class_around(call) if name.startswith("self.") else None
    methods = set(around.facts.methods.values()) if around is not None else set()
    everywhere = (*beside, *(c for c in linked.facts.calls if c.function in methods))
    made = [each for each in everywhere if each.bound == name]
    if any(_is_module(linked, each) or _TOKENIZES.search(each.spelled) for each in made):
        return False  # of modules, and of a tokenizer's batch, to() changes the very one
    if any(each.spelled == "isinstance" and _asks_kind(each, name) for each in beside):
        return False
    if any(c.spelled == "hasattr" and c.argument("", 0) == Expr("name", name) for c in beside):
        return False  # asked what it can do, it may be anything
    moved = any(method.name == call.method for method in linked.facts.functions)
    plain = name.rpartition(".")[2]
    return (
        not moved
        and call.receiver is not None
        and call.receiver.kind == "name"
        and _TENSOR.search(plain) is not None
    )


_TOKENIZES = re.compile(r"(tokenizer|processor|encode_plus|\.pad)$")


def _asks_kind(call: Call, name: str) -> bool:
    """Whether the function asks what the object is, and not whether it is a tensor."""
    kind = call.argument("class_or_tuple", 1)
    asked = call.argument("", 0) == Expr("name", name)
    return asked and kind is not None and not kind.text.endswith("Tensor")


def _is_module(linked: Linked, call: Call) -> bool:
    """Whether a call makes a module, itself or as a function of the project that returns one."""
    if _makes_module(linked, call):
        return True
    home, index = callee(linked, call) or (linked, MODULE)
    if index == MODULE:
        return False
    returned = {value.text for value in home.facts.functions[index].returns}
    inner = home.facts.calls_in(index)
    return any(
        _makes_module(home, each) and not returned.isdisjoint((each.bound, _name(each)))
        for each in inner
    )


def _makes_module(linked: Linked, call: Call) -> bool:
    made = linked.class_called(_name(call))
    return is_learnable_module(_name(call)) or (made is not None and made.file.is_module(made))


def _name(call: Call) -> str:
    return call.qualified or call.spelled


_MAKERS = (
    "torch.rand", "torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.tensor",
    "torch.cat", "torch.stack", "torch.arange", "torch.from_numpy", "torch.as_tensor",
)  # fmt: skip
