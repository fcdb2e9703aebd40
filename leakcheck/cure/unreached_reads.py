"""What a program may still do with what an edit takes from it, in lines that the trial did not run.

A trial shows nothing of them: a backward there may need the graph that an edit cuts, and a mean of
all that was kept needs every value. So before a trial the lines are found that may, in the edited
text, and the trial notes which of them it comes to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from leakcheck.cure.file_flows import FileFlows, ValueFlow, flows_in
from leakcheck.cure.flows import Flows
from leakcheck.cure.mentions import does_with_a_number, only_fills
from leakcheck.cure.reads import last_word
from leakcheck.cure.sites import SourceTree
from leakcheck.cure.slots import ATTRIBUTE, GLOBAL, LEARNS, Slot, Slots
from leakcheck.cure.unnamed_reads import BY_OTHER_NAMES, Found, UnnamedReads
from leakcheck.experiments import SourceSpan
from leakcheck.model import Holder, Reason

_WITHOUT_NAME = {*LEARNS, *BY_OTHER_NAMES}  # called
_CONSTANTS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Ellipsis)
Unreached = Collection[SourceSpan]


def may_miss(text: str, names: Collection[str]) -> bool:
    """Say whether a file may have a line that misses what an edit takes, without parsing it."""
    words = {*re.findall(r"\w+", text)}
    called = {*re.findall(r"(\w+) *\(", text)}
    return not words.isdisjoint({"__dict__", *names}) or not called.isdisjoint(_WITHOUT_NAME)


@dataclass(frozen=True, eq=False)
class Taken:
    """What an edit takes from a program, and the files of it that may read it, as edited.

    `holder`: of what is taken; `edited`: the lines that the edit changed, by path.
    """

    files: Mapping[str, SourceTree]
    holder: Holder
    edited: Mapping[str, Collection[int]]

    @cached_property
    def _flows(self) -> Flows:
        return Flows({path: flows_in(source) for path, source in self.files.items()})

    def asked(self) -> dict[str, set[int]]:
        """Return the lines that may miss it: the first of each statement, and of its function."""
        found: dict[str, set[int]] = {path: set() for path in self.files}
        for path, node in (*self._reads, *self._learning):
            file = self._flows.files[path]
            first = _first(file.function(node))
            found[path] |= {file.line(node)} | ({file.line(first)} if first else set())
        return found

    def missed_graph(self, unreached: Unreached) -> Reason | None:
        """Return where a gradient may be asked for that the run did not come to."""
        run = _TrialRun(self._flows, unreached)
        reached = [each for each in self._learning if run.came_to(*each)]
        learned = frozenset[Slot]().union(*(self._learned(*each) for each in reached))
        files = self._flows.files
        read = frozenset[Slot]().union(*(files[path].read_by(call) for path, call in reached))
        for path, call in self._learning:
            if run.came_to(path, call):
                continue
            unknown = self._learned(path, call) - learned - self._bound
            anew = self._bound_anew(path, call, reached)
            more = (files[path].read_by(call) - read) | anew
            if more & self._derived or (unknown and run.began(path, call)):
                return self._reason("backward-later", path, call)
        every = learned.union(*(self._learned(*each) for each in self._learning))
        for path, flow in self._flows.all:
            missed = (flow.reads & self._derived) and not run.came_to(path, flow.node)
            if missed and self._flows.derived(flow.binds) & every and not self._is_alike(flow, run):
                return self._reason("backward-later", path, flow.node)
        return None

    def missed_again(self, unreached: Unreached) -> Reason | None:
        """Return where a graph may be gone through once more that the run did not come to."""
        run = _TrialRun(self._flows, unreached)
        reached = (self._learned(*each) for each in self._learning if run.came_to(*each))
        learned = self._flows.derived(frozenset[Slot]().union(*reached))
        for each in self._learning:
            belongs = run.began(*each) or self._learned(*each) & learned
            if belongs and not run.came_to(*each):
                return self._reason("backward-later", *each)
        return None

    def missed_value(self, unreached: Unreached) -> Reason | None:
        """Return where what is kept may be read that the run did not come to."""
        missed = self._missed(unreached)
        return next((self._reason("read-later", *each) for each in missed), None)

    def missed_anywhere(self, unreached: Unreached) -> Reason | None:
        """Return where what is kept may be read without its name, whether the run came there."""
        unnamed = (*self._unnamed.by_reflection(), *self._unnamed.of_whole_objects())
        found = next((self._reason("read-unnamed", *each) for each in unnamed), None)
        return found or self.missed_value(unreached)

    def missed_tensor(self, unreached: Unreached) -> Reason | None:
        """Return where what is kept may be used as a tensor, which a number is not."""
        for path, read in self._missed(unreached):
            if not does_with_a_number(self.files[path], read):
                return self._reason("read-later", path, read)
        return self.missed_graph(unreached)

    def _missed(self, unreached: Unreached) -> Iterator[Found]:
        run = _TrialRun(self._flows, unreached)
        return (each for each in self._reads if not run.came_to(*each))

    def _bound_anew(self, path: str, call: cst.CSTNode, reached: Sequence[Found]) -> Slots:
        """Return what is computed anew between the last call that was reached and this one."""
        file, values = self._flows.files[path], self._learned(path, call)
        at = file.source.start(call)
        starts = (file.source.start(other) for where, other in reached if where == path)
        last = max((each for each in starts if each < at), default=at)
        between = (each for each in file.flows if last < file.source.start(each.node) < at)
        computed = (each.binds for each in between if each.reads & self._derived)
        return frozenset[Slot]().union(*computed) & values

    def _is_alike(self, flow: ValueFlow, run: _TrialRun) -> bool:
        """Whether a line that ran computes the same from the same: the trial compared that."""
        alike = (
            other.reads
            for path, other in self._flows.all
            if other.binds >= flow.binds and run.came_to(path, other.node)
        )
        return frozenset[Slot]().union(*alike) >= flow.reads & self._derived

    @cached_property
    def _bound(self) -> Slots:
        """The slots of which these files say what their values are computed from."""
        return frozenset[Slot]().union(*(flow.binds for _, flow in self._flows.all))

    def _learned(self, path: str, call: cst.CSTNode) -> Slots:
        assert isinstance(call, cst.Call)
        return self._flows.files[path].learned_by(call)

    @cached_property
    def _learning(self) -> list[Found]:
        """The calls that go back through a graph."""
        every = self._flows.files.items()
        calls = ((path, call) for path, file in every for call in file.all(cst.Call))
        return [(path, call) for path, call in calls if last_word(call.func) in LEARNS]

    @cached_property
    def _derived(self) -> Slots:
        """The slots of what is taken, and of all that is computed from it."""
        return self._flows.derived(self._flows.origins(self._held | self._put_at_the_edit()))

    @cached_property
    def _held(self) -> Slots:
        """The slots that the holder's name may stand for."""
        name, kind = self.holder.name, self.holder.kind
        if not name:
            return frozenset()
        if "attribute" in kind:
            return frozenset({(ATTRIBUTE, name)})
        if kind == "global":
            return frozenset({(ATTRIBUTE, name), (GLOBAL, name)})
        found = set()
        for path, file in self._flows.files.items():
            for each in file.all(cst.Name):
                is_it = each.value == name and (kind != "local" or self._is_edited(path, each))
                found |= {file.slot(each)} if is_it else set()
        return frozenset(found)

    def _is_edited(self, path: str, node: cst.CSTNode) -> bool:
        """Whether a node is in the holder's function, or in one that the edit changed."""
        source = self.files[path]
        around = [each for each in source.around(node) if isinstance(each, cst.FunctionDef)]
        return any(
            self._has_edit(path, each) or each.name.value == self.holder.function for each in around
        )

    def _has_edit(self, path: str, node: cst.CSTNode) -> bool:
        source = self.files[path]
        lines = range(source.start(node)[0], source.ranges[node].end.line + 1)
        return any(line in lines for line in self.edited.get(path, ()))

    def _put_at_the_edit(self) -> Slots:
        """Return the slots that the edited lines bind, and what they hand something to."""
        found: set[Slot] = set()
        for path, flow in self._flows.all:
            outer = self.files[path].parents[flow.node]  # a call within keeps what it was given
            is_edited = isinstance(flow.node, cst.BaseSmallStatement) or isinstance(outer, cst.Expr)
            if is_edited and self._has_edit(path, flow.node):
                found |= flow.binds
        for path, file in self._flows.files.items():
            for function in file.all(cst.FunctionDef):
                if any(self._has_edit(path, each) for each in function.decorators):
                    found |= file.result_of(function)
        return frozenset(found)

    def names(self) -> set[str]:
        """Return the names by which other files may read it, and functions that it is handed to."""
        found = {name for owner, name in self._derived if owner in (ATTRIBUTE, GLOBAL)}
        found |= self._unnamed.names()
        around = (o for path, node in self._reads for o in self.files[path].around(node))
        return found | {last_word(each.func) for each in around if isinstance(each, cst.Call)}

    @cached_property
    def _reads(self) -> list[Found]:
        """What reads it: each mention of a name, and what may read any attribute."""
        found = (
            (path, each)
            for path, file in self._flows.files.items()
            for each in file.values
            if file.slot(each) in self._derived and not only_fills(file.source, each)
        )
        return [*found, *self._unnamed.by_reflection()]

    @cached_property
    def _unnamed(self) -> UnnamedReads:
        return UnnamedReads(self._flows, self.holder)

    def _reason(self, code: str, path: str, node: cst.CSTNode) -> Reason:
        file = self._flows.files[path]
        line = file.line(node)
        return Reason.of(code, code=file.lines[line - 1].strip(), path=path, line=line)


@dataclass(frozen=True, eq=False)
class _TrialRun:
    """What a trial came to."""

    flows: Flows
    unreached: Unreached

    def came_to(self, path: str, node: cst.CSTNode) -> bool:
        """Whether it came to a part of the source, as far as it was asked."""
        spans = [each for each in self.unreached if each.path == path]
        starts = self._starts(self.flows.files[path], node) if spans else ()
        return not any(
            (each.line, each.column) <= at < (each.end_line, each.end_column)
            for each in spans
            for at in starts
        )

    def began(self, path: str, node: cst.CSTNode) -> bool:
        """Whether the function around was run: of others nobody knows whether they belong."""
        first = _first(self.flows.files[path].function(node))
        return first is None or self.came_to(path, first)

    @staticmethod
    def _starts(file: FileFlows, node: cst.CSTNode) -> tuple[tuple[int, int], ...]:
        """Return where a node begins, and where its statement does, as `ast` counts columns."""
        starts = (file.source.start(each) for each in (node, file.statement(node)))
        return tuple((line, len(file.lines[line - 1][:at].encode())) for line, at in starts)


def _first(function: cst.FunctionDef | None) -> cst.BaseStatement | cst.BaseSmallStatement | None:
    """Return a function's first statement that is run and marked."""
    for each in function.body.body if function is not None else ():
        match each:
            case cst.SimpleStatementLine(body=[cst.Expr(value=value)]) if isinstance(
                value, _CONSTANTS
            ):
                continue
        return each
    return None
