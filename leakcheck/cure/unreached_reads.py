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

from leakcheck.cure.reads import bound_names, last_part
from leakcheck.cure.sites import SourceTree
from leakcheck.model import Holder, Reason
from leakcheck.source.words import words

_LEARNS = ("backward", "grad", "vjp", "jvp")
_TAKES_NUMBERS = frozenset(
    {"print", "float", "int", "str", "bool", "len", "sum", "min", "max", "round"}
)
_ALL_OF_IT = ("vars", "getattr", "asdict")  # by which an attribute is read without its name
# of which the result is not asked for: they put in or take out, and read nothing
_CHANGES = frozenset[str]().union(
    *(words("methods", each) for each in ("add", "take", "take_if_there", "clear"))
)
_PARSE = ("parse_args", "parse_known_args", "parse_intermixed_args")
_DISPLAYS = (
    cst.Dict, cst.List, cst.Tuple, cst.Set, cst.Element, cst.DictElement, cst.StarredElement,
)  # fmt: skip
_CONSTANTS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Ellipsis)
_NO_VALUES = frozenset({"torch", "autograd", "self", "True", "False", "None", *_LEARNS})
_MAKE_RECORDS = ("dict", "SimpleNamespace", "types.SimpleNamespace")
_STATEMENTS = (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)


def may_miss(text: str, holder: Holder) -> bool:
    """Say whether a file may have a line that misses what an edit takes, without parsing it."""
    named = bool(holder.name) and holder.name in text
    return named or any(f"{each}(" in text for each in (*_LEARNS, *_ALL_OF_IT))


@dataclass(frozen=True, eq=False)
class Taken:
    """One file of an edited program, and what the edit takes: what a holder of this name holds.

    `edited`: the lines of this file that the edit changed, none where it is in another file.
    """

    source: SourceTree
    path: str
    holder: Holder
    edited: frozenset[int] = frozenset()

    def asked(self) -> set[int]:
        """Return the lines that may miss it: the first of each statement, and of its function."""
        nodes = [*self._reads, *self._learning]
        firsts = (self._first_line(self._function(each)) for each in nodes)
        return {self._line(each) for each in nodes} | {line for line in firsts if line}

    def missed_graph(self, unreached: Collection[int]) -> Reason | None:
        """Return where a gradient may be asked for that the run did not come to."""
        left = [call for call in self._learning if self._line(call) in unreached]
        came_to = [call for call in self._learning if call not in left]
        learned = set[str]().union(*map(self._values_in, came_to))
        for call in left:
            names = self._values_in(call)
            alone = self._ran(call, unreached) and names.isdisjoint(learned)
            if alone or names & self._names:
                return self._reason("backward-later", call)
        learned = learned.union(*map(self._values_in, left))
        missed = self._missed(unreached)
        bound = [(read, self._bound.get(self._statement(read), set())) for read in missed]
        if not self._derived(set[str]().union(*(names for _, names in bound))) & learned:
            return None
        found = (read for read, names in bound if self._derived(names) & learned)
        return next((self._reason("backward-later", read) for read in found), None)

    def missed_again(self, unreached: Collection[int]) -> Reason | None:
        """Return where a graph may be gone through once more that the run did not come to."""
        for call in self._learning:
            if self._line(call) in unreached and self._ran(call, unreached):
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
        return [each for each in self._reads if self._line(each) in unreached]

    @cached_property
    def _names(self) -> set[str]:
        """The names of what holds it: its own, and those that it was handed on to."""
        known = {self.holder.name} - {""}
        if not known:
            return known
        handed = [each for each in self._flows if self._hands_on(each[0])]
        pairs = [(self._mentions_in(node), bound) for node, _, bound in handed]
        while True:
            found = set[str]().union(*(bound for read, bound in pairs if read & known))
            if known.issuperset(found):
                return known
            known |= found

    def _mentions_in(self, value: cst.CSTNode) -> set[str]:
        """Return the names in a part of the source that may be those of the holder."""
        found = _Names()
        value.visit(found)
        return {each.value for each in found.nodes if self._may_be_it(each)}

    @cached_property
    def _classes(self) -> frozenset[str]:
        return frozenset(each.name.value for each in self.source.all(cst.ClassDef))

    def _hands_on(self, node: cst.CSTNode) -> bool:
        """Say whether a statement binds what is, or has in it as it is, what it names."""
        if not isinstance(node, (cst.Assign, cst.AnnAssign, cst.NamedExpr)):
            return False
        value = node.value
        if isinstance(value, cst.Call):
            made = self.source.text(value.func)
            return made in _MAKE_RECORDS or made in self._classes
        return isinstance(value, (cst.Name, cst.Attribute, cst.NamedExpr, *_DISPLAYS))

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
                case cst.Attribute(attr=cst.Name(value=method)) if method in _CHANGES:
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
        bound = {name for each in parsed for name in self._flow(each)[1]}
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
        return [call for call in calls if last_part(self.source.text(call.func)) in _LEARNS]

    def _values_in(self, value: cst.BaseExpression) -> set[str]:
        """Return the names of what a call goes back through: of `scaler.scale(loss)` the loss."""
        match value:
            case cst.Call(func=function, args=args):
                given = set[str]().union(
                    *(self._values_in(each.value) for each in args if each.keyword is None)
                )
                owner = function.value if isinstance(function, cst.Attribute) else None
                return given or (self._values_in(owner) if owner is not None else given)
            case cst.BinaryOperation(left=left, right=right):
                return self._values_in(left) | self._values_in(right)
        return self._names_in(value)

    def _ran(self, node: cst.CSTNode, unreached: Collection[int]) -> bool:
        """Whether the function around ran at all: of others nobody knows whether they belong."""
        return self._first_line(self._function(node)) not in unreached

    def _first_line(self, function: cst.FunctionDef | None) -> int:
        """Return the line of a function's first statement that is run and marked; 0 for none."""
        for each in function.body.body if function is not None else ():
            match each:
                case cst.SimpleStatementLine(body=[cst.Expr(value=value)]) if isinstance(
                    value, _CONSTANTS
                ):
                    continue
            return self._line(each)
        return 0

    def _derived(self, names: set[str]) -> set[str]:
        """Return names and those of what is computed from them, in this file."""
        while True:
            found = set[str]().union(*(bound for _, read, bound in self._flows if read & names))
            if names.issuperset(found):
                return names
            names = names | found

    @cached_property
    def _flows(self) -> list[tuple[cst.CSTNode, set[str], set[str]]]:
        """What is computed from what: parts of the source with the names they read and bind."""
        kinds = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)
        nodes = [
            each
            for kind in (*kinds, cst.WithItem, cst.Return, cst.Call)
            for each in self.source.all(kind)
        ]
        found = ((each, *self._flow(each)) for each in nodes)
        return [(node, read, bound) for node, read, bound in found if bound]

    def _flow(self, node: cst.CSTNode) -> tuple[set[str], set[str]]:
        """Return the names that a part of the source reads, and those that get what it makes."""
        match node:
            case cst.Assign(targets=targets, value=value):
                bound = set[str]().union(*(self._held_by(each.target) for each in targets))
                return self._names_in(value), bound
            case cst.AnnAssign(target=target, value=cst.CSTNode() as value):
                return self._names_in(value), self._held_by(target)
            case (
                cst.AugAssign(target=target, value=value)
                | cst.NamedExpr(target=target, value=value)
            ):
                return self._names_in(value), self._held_by(target)
            case cst.For(target=target, iter=value) | cst.CompFor(target=target, iter=value):
                return self._names_in(value), self._held_by(target)
            case cst.WithItem(item=value, asname=cst.AsName(name=target)):
                return self._names_in(value), self._held_by(target)
            case cst.Return(value=cst.CSTNode() as value):
                function = self._function(node)
                return self._names_in(value), {function.name.value} if function else set()
            case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value=method)), args=args):
                given = set[str]().union(*(self._names_in(each.value) for each in args))
                return given, self._held_by(held) if method in _CHANGES else set()
        return set(), set()

    def _held_by(self, target: cst.BaseExpression) -> set[str]:
        """Return the last words of the names that a target binds, or puts something into."""
        if isinstance(target, cst.Subscript):
            return self._held_by(target.value)
        return {last_part(name) for name in bound_names(target, self.source)}

    @cached_property
    def _bound(self) -> dict[cst.CSTNode, set[str]]:
        """The names that get what each statement makes, without those of the statements in it."""
        found: dict[cst.CSTNode, set[str]] = {}
        for node, _, bound in self._flows:
            found.setdefault(self._statement(node), set()).update(bound)
        return found

    def _names_in(self, node: cst.CSTNode) -> set[str]:
        """Return the names in a part of the source, without the module torch."""
        found = _Names()
        node.visit(found)
        return {each.value for each in found.nodes} - _NO_VALUES

    def _function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        around = self.source.around(node)
        return next((each for each in around if isinstance(each, cst.FunctionDef)), None)

    def _statement(self, node: cst.CSTNode) -> cst.CSTNode:
        around = (node, *self.source.around(node))
        return next((each for each in around if isinstance(each, _STATEMENTS)), node)

    def _line(self, node: cst.CSTNode) -> int:
        return self.source.start(self._statement(node))[0]

    def _reason(self, code: str, node: cst.CSTNode) -> Reason:
        statement = self._statement(node)
        told = self.source.text(statement).strip().splitlines()[0]
        return Reason.of(code, code=told, path=self.path, line=self._line(node))


def _parses(source: SourceTree, value: cst.BaseExpression) -> bool:
    """Whether a value is what an ArgumentParser makes."""
    return isinstance(value, cst.Call) and last_part(source.text(value.func)) in _PARSE


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[cst.Name] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.nodes.append(node)
