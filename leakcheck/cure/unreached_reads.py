"""What a program may still do with what an edit takes from it, in lines that the trial did not run.

A trial shows nothing of them: a backward there may need the graph that an edit cuts, and a mean of
all that was kept needs every value. So before a trial the lines are found that may, in the edited
text, and the trial notes which of them it comes to.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from leakcheck.cure.flows import CHANGES, LEARNS, Flows, mentions
from leakcheck.cure.reads import last_part
from leakcheck.cure.sites import SourceTree
from leakcheck.model import Holder, Reason

_TAKES_NUMBERS = frozenset(
    {"print", "float", "int", "str", "bool", "len", "sum", "min", "max", "round"}
)
_ALL_OF_IT = ("vars", "getattr", "asdict")  # by which an attribute is read without its name
_PARSE = ("parse_args", "parse_known_args", "parse_intermixed_args")
_DISPLAYS = (
    cst.Dict, cst.List, cst.Tuple, cst.Set, cst.Element, cst.DictElement, cst.StarredElement,
)  # fmt: skip
_CONSTANTS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Ellipsis)
_MAKE_RECORDS = ("dict", "SimpleNamespace", "types.SimpleNamespace")


def may_miss(text: str, holder: Holder) -> bool:
    """Say whether a file may have a line that misses what an edit takes, without parsing it."""
    named = bool(holder.name) and holder.name in text
    return named or any(f"{each}(" in text for each in (*LEARNS, *_ALL_OF_IT))


@dataclass(frozen=True, eq=False)
class Taken:
    """One file of an edited program, and what the edit takes: what a holder of this name holds.

    `edited`: the lines of this file that the edit changed, none where it is in another file.
    """

    source: SourceTree
    path: str
    holder: Holder
    edited: frozenset[int] = frozenset()

    @cached_property
    def _flows(self) -> Flows:
        return Flows(self.source)

    def asked(self) -> set[int]:
        """Return the lines that may miss it: the first of each statement, and of its function."""
        nodes = [*self._reads, *self._learning]
        firsts = (self._first_line(self._flows.function(each)) for each in nodes)
        return {self._flows.line(each) for each in nodes} | {line for line in firsts if line}

    def missed_graph(self, unreached: Collection[int]) -> Reason | None:
        """Return where a gradient may be asked for that the run did not come to."""
        left = [call for call in self._learning if self._flows.line(call) in unreached]
        came_to = [call for call in self._learning if call not in left]
        learned = set[str]().union(*map(self._flows.values_in, came_to))
        for call in left:
            names = self._flows.values_in(call)
            alone = self._ran(call, unreached) and names.isdisjoint(learned)
            if alone or names & self._names:
                return self._reason("backward-later", call)
        learned = learned.union(*map(self._flows.values_in, left))
        missed = self._missed(unreached)
        bound = [
            (read, self._flows.bound.get(self._flows.statement(read), set())) for read in missed
        ]
        if not self._flows.derived(set[str]().union(*(names for _, names in bound))) & learned:
            return None
        found = (read for read, names in bound if self._flows.derived(names) & learned)
        return next((self._reason("backward-later", read) for read in found), None)

    def missed_again(self, unreached: Collection[int]) -> Reason | None:
        """Return where a graph may be gone through once more that the run did not come to."""
        for call in self._learning:
            if self._flows.line(call) in unreached and self._ran(call, unreached):
                return self._reason("backward-later", call)
        return None

    def missed_value(self, unreached: Collection[int]) -> Reason | None:
        """Return where what is kept may be read that the run did not come to."""
        return next((self._reason("read-later", each) for each in self._missed(unreached)), None)

    def missed_tensor(self, unreached: Collection[int]) -> Reason | None:
        """Return where what is kept may be used as a tensor, which a number is not."""
        for read in self._missed(unreached):
            if not self._does_with_a_number(read):
                return self._reason("read-later", read)
        return self.missed_graph(unreached)

    def _missed(self, unreached: Collection[int]) -> list[cst.CSTNode]:
        return [each for each in self._reads if self._flows.line(each) in unreached]

    @cached_property
    def _names(self) -> set[str]:
        """The names of what holds it: its own, and those that it was handed on to."""
        known = {self.holder.name} - {""}
        if not known:
            return known
        handed = [(self._handed_on(node), bound) for node, _, bound in self._flows.flows]
        pairs = [(self._mentioned(value), bound) for value, bound in handed if value is not None]
        while True:
            found = set[str]().union(*(bound for read, bound in pairs if read & known))
            if known.issuperset(found):
                return known
            known |= found

    def _mentioned(self, value: cst.CSTNode) -> set[str]:
        """Return the names in a value that may be those of the holder."""
        return {each.value for each in mentions(value) if self._may_be_it(each)}

    @cached_property
    def _classes(self) -> frozenset[str]:
        return frozenset(each.name.value for each in self.source.all(cst.ClassDef))

    def _handed_on(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the value that a statement binds if it has what it names in it, as it is."""
        if not isinstance(node, (cst.Assign, cst.AnnAssign, cst.NamedExpr)):
            return None
        value = node.value
        if isinstance(value, cst.Call):
            made = self.source.text(value.func)
            return value if made in _MAKE_RECORDS or made in self._classes else None
        is_one = isinstance(value, (cst.Name, cst.Attribute, cst.NamedExpr, *_DISPLAYS))
        return value if is_one else None

    @cached_property
    def _reads(self) -> list[cst.CSTNode]:
        """What reads it: each mention of a name, and what may read any attribute."""
        names = self._names
        found: list[cst.CSTNode] = [
            each
            for each in self.source.all(cst.Name)
            if each.value in names and self._may_be_it(each) and not self._only_fills(each)
        ]
        if "attribute" in self.holder.kind:
            found += (each for each in self.source.all(cst.Call) if self._reads_any(each))
        return found

    def _may_be_it(self, name: cst.Name) -> bool:
        """A local is one of its own function; an attribute stands behind a dot."""
        outer = self.source.parents[name]
        behind = isinstance(outer, cst.Attribute) and outer.attr is name
        if "attribute" in self.holder.kind:
            return behind or name.value != self.holder.name
        if self.holder.kind != "local":
            return True
        around = (*self.source.around(name),)
        return not behind and any(each is one for each in around for one in self._edited_functions)

    @cached_property
    def _edited_functions(self) -> list[cst.FunctionDef]:
        """The functions around the edited lines."""
        return [
            each
            for each in self.source.all(cst.FunctionDef)
            if any(self._is_on(line, each) for line in self.edited)
        ]

    def _is_on(self, line: int, node: cst.CSTNode) -> bool:
        return self.source.start(node)[0] <= line <= self.source.ranges[node].end.line

    def _only_fills(self, name: cst.Name) -> bool:
        """Whether a mention binds the name, or puts in or takes out, and reads nothing."""
        value: cst.CSTNode = name
        for outer in self.source.around(name):
            match outer:
                case cst.Attribute(attr=attr) if attr is value:
                    value = outer
                case cst.Subscript(value=held) if held is value:
                    value = outer
                case cst.AssignTarget() | cst.NameItem() | cst.Param() | cst.Del():
                    return True
                case cst.AnnAssign(target=target) | cst.AugAssign(target=target):
                    return target is value
                case cst.Attribute(attr=cst.Name(value=method)) if method in CHANGES:
                    call = self.source.parents[outer]
                    return isinstance(self.source.parents[call], cst.Expr)
                case _:
                    return False
        return False

    def _reads_any(self, call: cst.Call) -> bool:
        """`vars(model)`, and `getattr(model, name)`, where nothing says which name."""
        function = self.source.text(call.func)
        if last_part(function) not in _ALL_OF_IT or self._is_of_none(call):
            return False
        name = (
            call.args[1].value if last_part(function) == "getattr" and len(call.args) > 1 else None
        )
        if isinstance(name, cst.SimpleString):
            return name.evaluated_value == self.holder.name
        return True

    def _is_of_none(self, call: cst.Call) -> bool:
        """Whether it asks a module, or the arguments of the program, which hold none of it."""
        asked = self.source.text(call.args[0].value) if call.args else ""
        parsed = (each for each in self.source.all(cst.Assign) if _parses(self.source, each.value))
        bound = {name for each in parsed for name in self._flows.flow(each)[1]}
        return asked in bound or asked in self._imported

    @cached_property
    def _imported(self) -> frozenset[str]:
        aliases = (each for each in self.source.all(cst.ImportAlias))
        return frozenset(each.evaluated_alias or each.evaluated_name for each in aliases)

    def _does_with_a_number(self, name: cst.CSTNode) -> bool:
        """Whether a value is printed or computed with, and asked for nothing that a tensor has."""
        value = name
        for outer in self.source.around(name):
            match outer:
                case cst.Attribute(attr=attr) if attr is value:
                    value = outer
                case (
                    cst.BinaryOperation()
                    | cst.UnaryOperation()
                    | cst.Comparison()
                    | cst.Subscript()
                ):
                    value = outer
                case cst.FormattedStringExpression() | cst.Expr() | cst.If():
                    return True
                case cst.Arg():
                    call = self.source.parents[outer]
                    function = call.func if isinstance(call, cst.Call) else call
                    return self.source.text(function) in _TAKES_NUMBERS
                case _:
                    return False
        return False

    @cached_property
    def _learning(self) -> list[cst.Call]:
        """The calls that go back through a graph."""
        calls = self.source.all(cst.Call)
        return [call for call in calls if last_part(self.source.text(call.func)) in LEARNS]

    def _ran(self, node: cst.CSTNode, unreached: Collection[int]) -> bool:
        """Whether the function around ran at all: of others nobody knows whether they belong."""
        return self._first_line(self._flows.function(node)) not in unreached

    def _first_line(self, function: cst.FunctionDef | None) -> int:
        """Return the line of a function's first statement that is run and marked; 0 for none."""
        for each in function.body.body if function is not None else ():
            match each:
                case cst.SimpleStatementLine(body=[cst.Expr(value=value)]) if isinstance(
                    value, _CONSTANTS
                ):
                    continue
            return self._flows.line(each)
        return 0

    def _reason(self, code: str, node: cst.CSTNode) -> Reason:
        statement = self._flows.statement(node)
        told = self.source.text(statement).strip().splitlines()[0]
        return Reason.of(code, code=told, path=self.path, line=self._flows.line(node))


def _parses(source: SourceTree, value: cst.BaseExpression) -> bool:
    """Whether a value is what an ArgumentParser makes."""
    return isinstance(value, cst.Call) and last_part(source.text(value.func)) in _PARSE
