"""Facts of a file linked with those of its project: hierarchies, and who else names an attribute.

Links are followed when a query asks. Another file is read only if it spells the name asked for, so
a query that has no candidate costs nothing, however large the project is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leakcheck.model import Location
from leakcheck.source.words import Pattern
from leakcheck.static.facts.model import (
    AttributeEffect,
    Call,
    ClassFacts,
    FileFacts,
    FunctionFacts,
    Span,
)
from leakcheck.static.facts.nodes import located
from leakcheck.static.torch_api import makes_module

if TYPE_CHECKING:
    from leakcheck.static.project import Project

DEEPEST_HIERARCHY = 12
# methods that give an object its first state, or another one from a file
_SETTING_UP = Pattern(r"(<names.constructors>|_*(<makes>|<renews>)(_\w+)?)$")


@dataclass(frozen=True)
class Member:
    """A class of the project, in the file that defines it."""

    file: Linked
    facts: ClassFacts

    def methods(self) -> Iterator[tuple[int, FunctionFacts]]:
        """Yield the class's own methods with their indexes."""
        for index in self.facts.methods.values():
            yield index, self.file.facts.functions[index]

    def binds(self) -> Iterator[AttributeEffect]:
        """Yield what the class's own methods, and functions in them, bind on self."""
        for use in self.file.facts.uses:
            if use.role == "bind" and use.holder == "self":
                method = self.file.facts.method_around(use.function)
                if method is not None and method.owner == self.facts.name:
                    yield use


def is_test(path: str) -> bool:
    """Tell whether a file is a test, or stands in for something in tests, by its name."""
    return _TEST.search(path) is not None or _STANDS_IN.search(path) is not None


def holds_tests(path: str, facts: FileFacts) -> bool:
    """Tell whether a file that is a test by its name is one, and no script that tests a model."""
    if _STANDS_IN.search(path) is not None or not is_test(path):
        return is_test(path)
    libraries = {source.partition(".")[0] for source in facts.imports.values()}
    named = any(function.name.startswith("test_") for function in facts.functions)
    used = not libraries.isdisjoint(("pytest", "unittest"))
    return named or used or _SUITE.search(path) is not None


def is_run_by_tests(path: str, source: str, facts: FileFacts) -> bool:
    """Tell whether a file holds tests of a suite, or helps those beside it.

    What such a file keeps ends with its test.
    """
    asserts = _ASSERTS.search(source) is not None or "import pytest" in source
    return holds_tests(path, facts) or (_SUITE.search(path) is not None and asserts)


_ASSERTS = re.compile(r"\bTestCase\b|\.assert(Equal|True|Raises)\(|\bassert_(close|allclose)\(")
_STANDS_IN = re.compile(r"(^|[/\\])(conftest|_?mock(_\w+)?|\w+_mock)\.py$")
_SUITE = re.compile(r"(^|[/\\])(tests?|testing)[/\\]")
_TEST = re.compile(r"(^|[/\\])(test_\w+|\w+_test)\.py$")


def sets_up(facts: FileFacts, function: int) -> bool:
    """Tell whether code runs where an object, or the module, is made or told what to be."""
    method = facts.method_around(function)
    return method is None or _SETTING_UP.match(method.name) is not None


class Linked:
    """The facts of one file, and the way from them to those of its project."""

    def __init__(self, path: str, facts: FileFacts, project: Project | None) -> None:
        """Link a file; `project` of None leaves it alone in the world."""
        self.path = path
        self.facts = facts
        self._project = project

    @property
    def classes(self) -> tuple[Member, ...]:
        """The file's classes; kept, they would hold what holds them."""
        return tuple(Member(self, each) for each in self.facts.classes)

    def lineage(self, member: Member) -> list[Member]:
        """Return a class and those of its bases that the project defines, nearest first."""
        found = [member]
        for each in found:
            for base in each.facts.bases:
                parent = each.file._class(base)
                if parent is not None and parent.facts not in [known.facts for known in found]:
                    found.append(parent)
            if len(found) > DEEPEST_HIERARCHY:
                break
        return found

    def foreign_bases(self, member: Member) -> set[str]:
        """Name the bases, of the class or its bases, that the project does not define."""
        return {
            base
            for each in self.lineage(member)
            for base in each.facts.bases
            if each.file._class(base) is None
        }

    def is_module(self, member: Member) -> bool:
        """Tell whether a class is a torch.nn.Module, by its bases or by what it registers."""
        if any(map(makes_module, self.foreign_bases(member))):
            return True
        methods = {index for index, _ in member.methods()}
        calls = member.file.facts.calls_by_name.get("register_buffer", ())
        return any(c.spelled == "self.register_buffer" and c.function in methods for c in calls)

    def everywhere(self, name: str) -> Iterator[FileFacts]:
        """Yield the facts of this file, and of all of its project that spell the name.

        What a test does with an object is not what the program does: tests speak among themselves.
        """
        yield self.facts
        among_tests = holds_tests(self.path, self.facts)
        for path in self._project.mentioning(name, self.path) if self._project else ():
            facts = self._project.facts(path) if self._project else None
            if facts is not None and (among_tests or not holds_tests(path, facts)):
                yield facts

    def uses(self, name: str) -> Iterator[tuple[FileFacts, AttributeEffect]]:
        """Yield what the project does with attributes of this last word."""
        for facts in self.everywhere(name):
            for use in facts.uses_by_name.get(name, ()):
                yield facts, use

    def uses_of(self, name: str, member: Member) -> Iterator[tuple[FileFacts, AttributeEffect]]:
        """Yield what may be done with a class's attribute: not what others do with their own."""
        kin = [each.facts for each in self.lineage(member)]
        for facts, use in self.uses(name):
            if use.holder != "self" or not self._has_its_own(facts, use, kin):
                yield facts, use

    def _has_its_own(
        self, facts: FileFacts, use: AttributeEffect, kin: Sequence[ClassFacts]
    ) -> bool:
        """Whether the class around a use of self is another, with such an attribute or property.

        One that derives from the class meant sets it in `__init__`, any other in some method.
        Classes of the same name in one file are not told apart.
        """
        owner = facts.class_around(use.function)
        here = {each.name for each in kin if any(each is known for known in facts.classes)}
        if owner is None or owner.name in here:
            return False
        binding = {
            other.function
            for other in facts.uses_by_name.get(use.name, ())
            if other.role == "bind"
            if other.holder == "self" and facts.class_around(other.function) is owner
        }
        if use.name in owner.methods or owner.methods.get("__init__") in binding:
            return True
        theirs = [each.facts for each in self.lineage(Member(self.of(facts), owner))]
        return bool(binding) and not any(one is each for one in theirs for each in kin)

    def calls_of(self, name: str) -> Iterator[tuple[FileFacts, Call]]:
        """Yield the project's calls of whatever has this last word."""
        for facts in self.everywhere(name):
            for call in facts.calls_by_name.get(name, ()):
                yield facts, call

    def location(self, facts: FileFacts, at: Span) -> Location | None:
        """Return where something in another file of the project is; None when it is not known."""
        if facts is self.facts:
            return None
        path = self._project.path_of(facts) if self._project is not None else None
        if self._project is None or path is None:
            return None
        return located(path, self._project.lines(path), at)

    def definers(self, method: str) -> Iterator[Member]:
        """Yield the project's classes that define a method of this name."""
        for facts in self.everywhere(method):
            for each in facts.classes:
                if method in each.methods:
                    yield Member(self.of(facts), each)

    def class_around(self, call: Call) -> Member | None:
        """Return the class in whose method a call stands."""
        owner = self.facts.class_around(call.function)
        return Member(self, owner) if owner is not None else None

    def own_method(self, call: Call) -> tuple[Linked, int] | None:
        """Return the method that `self.name()` calls, of the class around it or of a base."""
        around = self.class_around(call)
        for member in self.lineage(around) if around is not None else ():
            if call.method in member.facts.methods:
                return member.file, member.facts.methods[call.method]
        return None

    def of(self, facts: FileFacts) -> Linked:
        """Link another file of the project, whose facts these are."""
        if facts is self.facts:
            return self
        path = self._project.path_of(facts) if self._project is not None else None
        return Linked(path or "", facts, self._project)

    def imported_module(self, name: str) -> Linked | None:
        """Return the file of the project that an imported name stands for."""
        source = self.facts.imports.get(name)
        path = self._project.locate(source, self.path) if self._project and source else None
        return self._at(path) if path else None

    def home(self, name: str) -> tuple[Linked, str] | None:
        """Return the file that defines an imported name, through re-exports, and its name there."""
        source = self.facts.imports.get(name)
        home = self._project.home(source, self.path) if self._project and source else None
        file = self._at(home[0]) if home else None
        return (file, home[1]) if file is not None and home else None

    def is_imported_early(self) -> bool:
        """Tell whether the project imports this file as other files are imported, or runs it.

        A function that imports it is on the stack, with all that called it, when it runs.
        """
        return not all(self._importers()) or self.path.endswith("__main__.py")

    def is_imported(self) -> bool:
        """Tell whether the project imports this file at all."""
        return bool(self._importers())

    def _importers(self) -> list[bool]:
        """Say of each import of this file in the project whether a function does it."""
        path = Path(self.path)
        name = path.parent.name if path.stem == "__init__" else path.stem
        sources = {
            (self.of(facts).path, source): source in facts.late_imports
            for facts in self.everywhere(name)
            if facts is not self.facts
            for source in facts.imports.values()
        }
        return [late for (home, source), late in sources.items() if self._is_source(source, home)]

    def _is_source(self, source: str, importer: str) -> bool:
        """Whether an import is of this file, or of something in it."""
        places = (source, source.rpartition(".")[0])
        known = self._project
        return known is not None and any(
            each and known.locate(each, importer) == self.path for each in places
        )

    def _at(self, path: str) -> Linked | None:
        facts = self._project.facts(path) if self._project is not None else None
        return Linked(path, facts, self._project) if facts is not None else None

    def imported(self, name: str) -> tuple[FileFacts, str] | None:
        """Return the file of the project that an imported name is from, and its name there."""
        source = self.facts.imports.get(name)
        if source is None or self._project is None:
            return None
        module, _, last = source.rpartition(".")
        module = module or "." * (len(source) - len(source.lstrip(".")))
        path = self._project.locate(module, self.path)
        facts = self._project.facts(path) if path else None
        return (facts, last) if facts is not None else None

    def spelled_as_string(self, name: str) -> bool:
        """Tell whether getattr, setattr or `__dict__` may reach the attribute anywhere."""
        return any(name in facts.strings for facts in self.everywhere(name))

    def class_called(self, name: str) -> Member | None:
        """Return the class of this name, as qualified as the imports tell."""
        return self._class(name)

    def _class(self, name: str) -> Member | None:
        own = self.facts.class_named(name)
        if own is not None:
            return Member(self, own)
        home = self._project.home(name, self.path) if self._project and "." in name else None
        facts = self._project.facts(home[0]) if self._project and home else None
        found = facts.class_named(home[1]) if facts is not None and home else None
        if facts is None or found is None or home is None:
            return None
        return Member(Linked(home[0], facts, self._project), found)
