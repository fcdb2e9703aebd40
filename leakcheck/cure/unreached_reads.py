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
_DISPLAYS = (
    cst.Dict, cst.List, cst.Tuple, cst.Set, cst.Element, cst.DictElement, cst.StarredElement,
)  # fmt: skip
_MAKE_RECORDS = ("dict", "SimpleNamespace", "types.SimpleNamespace")
_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


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
        functions = (self._function(each) for each in nodes)
        begins = (each.body for each in functions if each is not None)
        firsts = [each.body[0] for each in begins if isinstance(each, cst.IndentedBlock)]
        return {self._line(each) for each in (*nodes, *firsts)}

    def missed_graph(self, unreached: Collection[int]) -> Reason | None:
        """Return where a gradient may be asked for that the run did not come to."""
        left = [call for call in self._learning if self._line(call) in unreached]
        came_to = [call for call in self._learning if call not in left]
        learned = set[str]().union(*map(self._names_in, came_to))
        for call in left:
            names = self._names_in(call)
            alone = self._ran(call, unreached) and names.isdisjoint(learned)
            if alone or names & self._names:
                return self._reason("backward-later", call)
        learned = learned.union(*map(self._names_in, left))
        for read in self._missed(unreached):
            if self._derived(self._bound_by(self._statement(read))) & learned:
                return self._reason("backward-later", read)
        return None

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
        assigned = [each for each in self.source.all(cst.Assign) if self._hands_on(each.value)]
        while True:
            more = (
                last_part(name)
                for each in assigned
                if self._names_in(each.value) & known
                for target in each.targets
                for name in bound_names(target.target, self.source)
            )
            if known.issuperset(found := set(more)):
                return known
            known |= found

    @cached_property
    def _classes(self) -> frozenset[str]:
        return frozenset(each.name.value for each in self.source.all(cst.ClassDef))

    def _hands_on(self, value: cst.BaseExpression) -> bool:
        """Say whether a value is, or has in it as it is, what it names."""
        if isinstance(value, cst.Call):
            made = self.source.text(value.func)
            return made in _MAKE_RECORDS or made in self._classes
        return isinstance(value, (cst.Name, cst.Attribute, *_DISPLAYS))

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
        if function not in _ALL_OF_IT:
            return False
        name = call.args[1].value if function == "getattr" and len(call.args) > 1 else None
        if isinstance(name, cst.SimpleString):
            return name.evaluated_value == self.holder.name
        return True

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

    def _ran(self, node: cst.CSTNode, unreached: Collection[int]) -> bool:
        """Whether the function around ran at all: of others nobody knows whether they belong."""
        function = self._function(node)
        if function is None or not isinstance(function.body, cst.IndentedBlock):
            return True
        return self._line(function.body.body[0]) not in unreached

    def _derived(self, names: set[str]) -> set[str]:
        """Return names and those of what is computed from them, in this file."""
        binding = (*self.source.all(cst.Assign), *self.source.all(cst.AugAssign))
        pairs = [(self._names_in(each), self._bound_by(each)) for each in binding]
        while True:
            found = set[str]().union(*(bound for read, bound in pairs if read & names))
            if names.issuperset(found):
                return names
            names = names | found

    def _bound_by(self, node: cst.CSTNode) -> set[str]:
        """Return the last words of the names that statements give a value."""
        found: set[str] = set()
        for part in node.body if isinstance(node, cst.SimpleStatementLine) else [node]:
            if isinstance(part, (cst.Assign, cst.AugAssign)):
                targets = part.targets if isinstance(part, cst.Assign) else [part]
                bound = (bound_names(each.target, self.source) for each in targets)
                found.update(last_part(name) for names in bound for name in names)
        return found

    def _names_in(self, node: cst.CSTNode) -> set[str]:
        """Return the names in a part of the source, without the module torch."""
        found = _Names()
        node.visit(found)
        return found.names - {"torch", "autograd", "self", *_LEARNS}

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


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)
