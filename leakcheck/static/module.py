"""One parsed file and the questions rules ask about it.

The tree is walked once into lists by node kind, with parents; the tree itself, names, positions,
facts and analyses are worked out only when a rule asks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, MetadataWrapper, PositionProvider

from leakcheck.model import Edit, Location
from leakcheck.static import syntax
from leakcheck.static.facts.extract import extract
from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import FileFacts, Span
from leakcheck.static.facts.nodes import located
from leakcheck.static.fix import split_lines
from leakcheck.static.names import Names, canonical

if TYPE_CHECKING:
    from leakcheck.static.project import Project

N = TypeVar("N", bound=cst.CSTNode)
T = TypeVar("T")
LoopNode = cst.For | cst.While
_COMPOUND = (cst.For, cst.While, cst.If, cst.With, cst.Try, cst.TryStar)


@runtime_checkable
class Releasable(Protocol):
    """An answer whose parts refer to each other: Python would be late to free them."""

    def release(self) -> None:
        """Break the cycles."""


class Module:
    """A parsed source file, indexed once, questioned lazily."""

    def __init__(
        self,
        source: str,
        tree: cst.Module | None = None,
        path: str = "",
        project: Project | None = None,
    ) -> None:
        """Take a source; `project` lets analyses look into the modules it imports."""
        self.source = source
        self.path = path
        self.project = project
        self._answers: dict[object, object] = {}
        if tree is not None:
            self.tree = tree

    @cached_property
    def tree(self) -> cst.Module:
        """LibCST's tree; SourceError when it cannot be made."""
        return syntax.parse(self.source)

    @cached_property
    def facts(self) -> Linked:
        """What the file does, linked with its project; needs no LibCST tree."""
        facts = self.project.facts_of(self.path, self.source) if self.project is not None else None
        if facts is None:
            outline = syntax.outline(self.source)
            facts = extract(outline) if outline is not None else FileFacts()
        return Linked(self.path, facts, self.project)

    def forget(self) -> None:
        """Let go of what the analysis found out; the next question starts it anew."""
        for answer in self._answers.values():
            if isinstance(answer, Releasable):
                answer.release()
        self._answers.clear()
        vars(self).pop("_positions", None)  # three times the size of the tree

    def release(self) -> None:
        """Break the module's cycles, so that it is freed at once; it answers no more questions."""
        self.forget()
        vars(self).clear()

    def nodes(self, kind: type[N]) -> list[N]:
        """List every node of exactly this kind, in source order."""
        return self._by_kind.get(kind, [])  # type: ignore[return-value]

    @property
    def calls(self) -> list[cst.Call]:
        """Every call, in source order."""
        return self.nodes(cst.Call)

    @property
    def functions(self) -> list[cst.FunctionDef]:
        """Every function and method, nested ones included."""
        return self.nodes(cst.FunctionDef)

    @property
    def classes(self) -> list[cst.ClassDef]:
        """Every class, nested ones included."""
        return self.nodes(cst.ClassDef)

    @cached_property
    def loops(self) -> list[LoopNode]:
        """Every for and while loop; comprehensions are not loops here."""
        return [*self.nodes(cst.For), *self.nodes(cst.While)]

    def loops_with(self, ids: frozenset[int]) -> list[LoopNode]:
        """List the loops of these ids."""
        return [self._loops_by_id[each] for each in ids if each in self._loops_by_id]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the node that holds this one; None for the module itself."""
        return self._parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around this one, innermost first, down to the module."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def enclosing(self, node: cst.CSTNode, *kinds: type[N]) -> N | None:
        """Return the nearest node of these kinds around this one."""
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), None)

    def function_of(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """Return the function whose body the node is in."""
        return self.enclosing(node, cst.FunctionDef)

    def class_of(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class around the node, through any functions between them."""
        return self.enclosing(node, cst.ClassDef)

    def member_of(self, node: cst.CSTNode) -> Member | None:
        """Return the class around the node with its place in the project."""
        owner = self.class_of(node)
        known = self.facts.facts.class_named(owner.name.value) if owner is not None else None
        return Member(self.facts, known) if known is not None else None

    def index_of(self, function: cst.FunctionDef) -> int | None:
        """Return the number of a function among the file's facts; None where it is not there."""
        name, line = function.name.value, self.location(function).line
        functions = self.facts.facts.functions
        return next(
            (i for i, f in enumerate(functions) if (f.name, f.at.line) == (name, line)), None
        )

    def loop_of(self, node: cst.CSTNode) -> LoopNode | None:
        """Return the innermost loop of the same function that runs the node at each turn."""
        inner = node
        for above in self.ancestors(node):
            match above:
                case cst.FunctionDef() | cst.Lambda() | cst.ClassDef():
                    return None
                case cst.For() if inner is not above.iter and inner is not above.orelse:
                    return above
                case cst.While() if inner is not above.orelse:
                    return above
            inner = above
        return None

    def statement_of(self, node: cst.CSTNode) -> cst.BaseStatement | cst.BaseSmallStatement | None:
        """Return the simple statement, or the compound statement's header, the node stands in."""
        for above in (node, *self.ancestors(node)):
            if isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return above
        return None

    @cached_property
    def names(self) -> Names:
        """The import table."""
        functions = [node.name.value for node in self.functions if self._at_top(node)]
        own = functions + [node.name.value for node in self.classes if self._at_top(node)]
        return Names([*self.nodes(cst.Import), *self.nodes(cst.ImportFrom)], own)

    def qualified(self, node: cst.BaseExpression) -> str:
        """Spell what a name refers to by the imports, "torch.optim.SGD"; empty when unknown."""
        named = self.names.qualified(node)
        return named or (self._kept(syntax.dotted(node)) if self._kept_imports else "")

    def _kept(self, spelled: str) -> str:
        """Spell `self.plt.figure` by the import that `self.plt` was given: `self.plt = plt`."""
        holder, _, rest = spelled.partition(".")
        name, dot, tail = rest.partition(".")
        home = self._kept_imports.get(name) if holder == "self" else None
        return canonical(f"{home}{dot}{tail}") if home else ""

    @cached_property
    def _kept_imports(self) -> dict[str, str]:
        """What attributes of self are given of the imports, and nothing else but None."""
        found: dict[str, str] = {}
        for node in self.nodes(cst.Assign):
            for target, value in syntax.bindings(node):
                name = syntax.dotted(target).removeprefix("self.")
                if not isinstance(target, cst.Attribute) or syntax.constant(value) is None:
                    continue
                home = self.names.qualified(value) if isinstance(value, cst.Name) else ""
                outside = home and not home.startswith(".")
                found[name] = home if outside and found.get(name, home) == home else ""
        return found

    def calls_of(self, *names: str) -> Iterator[cst.Call]:
        """Yield the calls of these fully qualified functions or classes."""
        found = [call for name in set(names) for call in self._calls_by_name.get(name, ())]
        yield from sorted(found, key=lambda call: self._places[id(call)])

    def bases(self, node: cst.ClassDef) -> tuple[str, ...]:
        """Name a class's bases, following those in the same module to the imported ones."""
        found: list[str] = []
        todo, seen = [node], {id(node)}
        while todo:
            for base in todo.pop().bases:
                own = self.class_named(syntax.dotted(base.value))
                if own is not None and id(own) not in seen:
                    seen.add(id(own))
                    todo.append(own)
                elif own is None:
                    found.append(self.qualified(base.value) or syntax.dotted(base.value))
        return tuple(name for name in found if name)

    def class_named(self, name: str) -> cst.ClassDef | None:
        """Return the module's own class of this name."""
        return self._classes_by_name.get(name)

    def top_function(self, name: str) -> cst.FunctionDef | None:
        """Return the function of this name at the module's top level."""
        return self._functions_by_name.get(name)

    def defines(self, name: str) -> bool:
        """Whether the module itself defines this function or class."""
        return name in self._functions_by_name or name in self._classes_by_name

    def once(self, question: Callable[[Module], T]) -> T:
        """Return what a question about this module finds; it is asked once, until `forget`."""
        if question not in self._answers:
            self._answers[question] = question(self)
        return cast("T", self._answers[question])

    def methods(self, node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        """Map the names of a class's own methods to their definitions."""
        return {
            statement.name.value: statement
            for statement in node.body.body
            if isinstance(statement, cst.FunctionDef)
        }

    def code(self, node: cst.CSTNode) -> str:
        """Write a node as it stands in the source."""
        return self.tree.code_for_node(node)

    def span(self, node: cst.CSTNode) -> CodeRange:
        """Return where a node stands: lines from 1, columns from 0. Costly the first time."""
        span = self._positions[node]
        if not self._lost_columns:
            return span
        start, end = (
            CodePosition(at.line, at.column + self._lost_columns.get(at.line, 0))
            for at in (span.start, span.end)
        )
        return CodeRange(start, end)

    def location(self, node: cst.CSTNode | Span) -> Location:
        """Return where to point a reader: a definition's name, a compound statement's header."""
        if isinstance(node, Span):
            return self._location_of_span(node)
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            node = node.name
        span = self.span(node)
        end_line, end_column = span.end.line, span.end.column
        if isinstance(node, _COMPOUND):
            end_line = span.start.line
            end_column = len(self.lines[end_line - 1].rstrip())
        start = span.start
        return Location(self.path, start.line, start.column + 1, end_line, end_column + 1)

    def _location_of_span(self, span: Span) -> Location:
        return located(self.path, self.lines, span)

    def location_in(self, facts: FileFacts, span: Span) -> Location | None:
        """Return a place in this file or another of the project; None when it is not known."""
        own = facts is self.facts.facts
        return self.location(span) if own else self.facts.location(facts, span)

    @cached_property
    def lines(self) -> list[str]:
        """The source's lines, without their ends."""
        return [line.rstrip("\r\n") for line in split_lines(self.source)]

    def line(self, number: int) -> str:
        """Return one line of the source, counted from 1; empty past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def replace(self, node: cst.CSTNode, text: str) -> Edit:
        """Edit: put `text` in the node's place."""
        at = self.span(node)
        return Edit(at.start.line, at.start.column + 1, at.end.line, at.end.column + 1, text)

    def insert_after(self, node: cst.CSTNode, text: str) -> Edit:
        """Edit: put `text` right behind the node."""
        at = self.span(node).end
        return Edit(at.line, at.column + 1, at.line, at.column + 1, text)

    def insert_before(self, node: cst.CSTNode, text: str) -> Edit:
        """Edit: put `text` right in front of the node."""
        at = self.span(node).start
        return Edit(at.line, at.column + 1, at.line, at.column + 1, text)

    @cached_property
    def _positions(self) -> dict[cst.CSTNode, CodeRange]:
        wrapper = MetadataWrapper(self.tree, unsafe_skip_copy=True)
        return dict(wrapper.resolve(PositionProvider))

    @cached_property
    def _lost_columns(self) -> dict[int, int]:
        """Count, by line, the characters before a form feed: LibCST drops them and its columns."""
        if "\f" not in self.source:
            return {}
        kept = [line.rstrip("\r\n") for line in split_lines(self.tree.code)]
        pairs = enumerate(zip(self.lines, kept, strict=False), start=1)
        return {number: len(line) - len(code) for number, (line, code) in pairs if line != code}

    @cached_property
    def _calls_by_name(self) -> dict[str, list[cst.Call]]:
        found: dict[str, list[cst.Call]] = defaultdict(list)
        for call in self.calls:
            if name := self.qualified(call.func):
                found[name].append(call)
        return dict(found)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(call): place for place, call in enumerate(self.calls)}

    @cached_property
    def _loops_by_id(self) -> dict[int, LoopNode]:
        return {id(loop): loop for loop in self.loops}

    @cached_property
    def _classes_by_name(self) -> dict[str, cst.ClassDef]:
        return {node.name.value: node for node in reversed(self.classes)}

    @cached_property
    def _functions_by_name(self) -> dict[str, cst.FunctionDef]:
        return {node.name.value: node for node in self.functions if self._at_top(node)}

    def _at_top(self, node: cst.CSTNode) -> bool:
        return self.enclosing(node, cst.FunctionDef, cst.ClassDef) is None

    @cached_property
    def _by_kind(self) -> dict[type, list[cst.CSTNode]]:
        return self._index[0]

    @cached_property
    def _parents(self) -> dict[int, cst.CSTNode]:
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[dict[type, list[cst.CSTNode]], dict[int, cst.CSTNode]]:
        by_kind: dict[type, list[cst.CSTNode]] = defaultdict(list)
        parents: dict[int, cst.CSTNode] = {}
        children = syntax.children
        stack: list[cst.CSTNode] = [self.tree]
        while stack:
            node = stack.pop()
            by_kind[type(node)].append(node)
            below = children(node)
            for child in below:
                parents[id(child)] = node
            below.reverse()
            stack += below
        return by_kind, parents
