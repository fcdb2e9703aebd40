"""What a function of the project gives back, and what it does to its arguments."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.fillers import fill_arguments, note_fills, sum_arguments
from leakcheck.static.flow.records import Backward
from leakcheck.static.flow.substitution import substitute
from leakcheck.static.flow.values import EMPTY, NONE, UNKNOWN, Ids, Value, join_all

if TYPE_CHECKING:
    from leakcheck.static.flow.analysis import Analysis
    from leakcheck.static.flow.arguments import Arguments
    from leakcheck.static.flow.walk import Flow


class Definition:
    """A function of the project, as its callers see it."""

    def __init__(self, analysis: Analysis, function: cst.FunctionDef) -> None:
        """Refer to a function; it is walked when first called."""
        self.analysis = analysis
        self.function = function

    @property
    def flow(self) -> Flow | None:
        """The walked function; None while it calls itself."""
        return self.analysis.flow(self.function)

    def call(self, flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
        """Return what a call gives back; evidence inside the function reaches the arguments."""
        bound = self.bind(arguments)
        if flow.owner is not None and syntax.dotted(call.func).startswith("self."):
            flow.owner.feed(self, flow, call, bound)
        return self.apply(flow, call, bound, arguments.sinks)

    def bind(self, arguments: Arguments) -> dict[str, Value]:
        """Match arguments to the function's parameters."""
        names = [p.name.value for p in syntax.parameters(self.function)]
        names = names[self.is_bound :]
        bound = dict(zip(names, arguments.positional, strict=False))
        bound |= {k: v for k, v in arguments.named.items() if k in names}
        further = {k: v for k, v in arguments.named.items() if k not in names}
        match self.function.params.star_arg:
            case cst.Param(name=cst.Name(value=name)):
                listed = self.function.params
                taken = len([*listed.posonly_params, *listed.params]) - self.is_bound
                bound[name] = join_all(v.contents for v in arguments.positional[taken:])
        match self.function.params.star_kwarg:
            case cst.Param(name=cst.Name(value=name)):
                bound[name] = join_all(value.contents for value in further.values())
        return bound

    def argument(self, call: cst.Call, name: str) -> cst.BaseExpression | None:
        """Return the expression that a call hands to a parameter."""
        names = [p.name.value for p in syntax.parameters(self.function)][self.is_bound :]
        found = syntax.argument(call, name, names.index(name) if name in names else None)
        return found.value if found is not None else None

    def apply(self, flow: Flow, call: cst.Call, bound: dict[str, Value], sinks: Ids) -> Value:
        """Return what the function gives back for these parameters."""
        inner = self.flow
        if self.analysis is flow.analysis:
            self.analysis.answered[id(call)] = self
            self.analysis.callers.setdefault(id(self.function), []).append(flow.scope)
        if inner is None or self.is_abstract:
            unknown = Value(UNKNOWN, "unknown", frozenset({id(call)}), born=flow.born, sinks=sinks)
            return flow.seen(flow.made(unknown))
        note_fills(self, inner, flow, call, bound)
        fill_arguments(self, inner, flow, call, bound)
        sum_arguments(self, inner, flow, call, bound)
        if inner.backwards:
            flow.backwards.append(Backward(call, EMPTY, flow.born))
        for name in inner.freed & bound.keys():
            flow.backward(bound[name], call)
        for name in inner.asked & bound.keys():
            flow.differentiated(bound[name], call)
        for sink in sinks:
            flow.uses.setdefault(sink, set()).add("escape")
        if flow.gradient is False:
            return flow.made(substitute(join_all(inner.returned), bound, flow, id(call), sinks))
        result = join_all(inner.returned) if inner.returned else EMPTY
        if self.is_generator:
            result = Value(NONE, "list", element=result)
        return flow.seen(flow.made(substitute(result, bound, flow, id(call), sinks)))

    @cached_property
    def is_bound(self) -> bool:
        """Whether the first parameter is filled in by the call's receiver."""
        return [p.name.value for p in syntax.parameters(self.function)][:1] in (["self"], ["cls"])

    @cached_property
    def is_abstract(self) -> bool:
        """Whether the body does nothing but wait for a subclass."""
        body = [s for s in self.function.body.body if not _says_nothing(s)]
        return not body

    @cached_property
    def is_generator(self) -> bool:
        """Whether the function yields."""
        return any(isinstance(node, cst.Yield) for node in syntax.walk(self.function.body))


def _says_nothing(statement: cst.CSTNode) -> bool:
    """Whether a statement is a docstring, pass, `...` or raises."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Pass()]):
            return True
        case cst.SimpleStatementLine(body=[cst.Expr(value=value)]):
            return isinstance(value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis))
        case cst.SimpleStatementLine(body=[cst.Raise()]):
            return True
    return False
