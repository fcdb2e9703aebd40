"""What may read what a holder holds without its name: all of an object, or all of a namespace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from leakcheck.cure.file_flows import FileFlows
from leakcheck.cure.flows import Flows
from leakcheck.cure.mentions import is_part
from leakcheck.cure.reads import last_word
from leakcheck.cure.slots import ATTRIBUTE, GLOBAL, SELF, Slot, Slots
from leakcheck.model import Holder

BY_OTHER_NAMES = ("vars", "getattr", "asdict", "astuple", "__dict__", "globals", "locals")
_NAMESPACES = ("globals", "locals", "vars")  # without an argument
_PARSE = ("parse_args", "parse_known_args", "parse_intermixed_args")
_ASSIGNS = (cst.Assign, cst.AnnAssign)
Found = tuple[str, cst.CSTNode]  # with the path of its file


@dataclass(frozen=True, eq=False)
class UnnamedReads:
    """Finds them in the files of a program."""

    flows: Flows
    holder: Holder

    @property
    def _is_attribute(self) -> bool:
        return "attribute" in self.holder.kind

    def by_reflection(self) -> Iterator[Found]:
        """Yield `vars(model)`, `self.__dict__`, `getattr(model, name)`, `globals()`."""
        for path, file in self.flows.files.items():
            for node in (*file.all(cst.Call), *file.all(cst.Attribute)):
                of_object = self._is_attribute and self._reads_object(file, node)
                if of_object or (not self._is_attribute and _reads_namespace(node)):
                    yield path, node

    def of_whole_objects(self) -> Iterator[Found]:
        """Yield where an object that has the attribute is used, and not one of its attributes."""
        for path, file in self.flows.files.items() if self._is_attribute else ():
            for name in file.values:
                if file.slot(name) in self._objects and not is_part(file.source, name):
                    yield path, name

    def names(self) -> set[str]:
        """Return the names by which other files may know an object that has the attribute."""
        if not self._is_attribute:
            return set()
        return {name for owner, name in self._objects if owner in (ATTRIBUTE, GLOBAL)}

    @cached_property
    def _objects(self) -> Slots:
        """The slots of objects of the holder's class: what it makes, and `self` in its methods."""
        makers, known = set(self._family), self._selves()
        while True:
            found = {each for file in self.flows.files.values() for each in _made(file, makers)}
            more = self.flows.aliases(frozenset(known | found))
            returning = {
                name
                for file in self.flows.files.values()
                for name in _returning(file, more, makers)
            }
            if known >= more and makers >= returning:
                return frozenset(known)
            known, makers = set(more), makers | returning

    def _selves(self) -> set[Slot]:
        found = set()
        for file in self.flows.files.values():
            for method in file.all(cst.FunctionDef):
                owner, first = file.owner(method), method.params.params[:1]
                if owner is not None and owner.name.value in self._family:
                    found |= {file.slot(one.name) for one in first if one.name.value in SELF}
        return found

    @cached_property
    def _family(self) -> set[str]:
        """The holder's class with its bases and the classes that are made of it, by their names."""
        bases = [
            (each.name.value, {last_word(base.value) for base in each.bases})
            for file in self.flows.files.values()
            for each in file.all(cst.ClassDef)
        ]
        own = {self.holder.owner.rpartition(".")[2]}
        up, down = set(own), set(own)
        for _ in bases:
            up = up.union(*(names for name, names in bases if name in up))
            down |= {name for name, names in bases if names & down}
        return up | down

    def _reads_object(self, file: FileFlows, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            return node.attr.value == "__dict__"
        if not isinstance(node, cst.Call) or last_word(node.func) not in BY_OTHER_NAMES:
            return False
        if _is_of_none(file, node):
            return False
        is_getattr = last_word(node.func) == "getattr" and len(node.args) > 1
        name = node.args[1].value if is_getattr else None
        if isinstance(name, cst.SimpleString):
            return name.evaluated_value == self.holder.name
        return True


def _made(file: FileFlows, makers: set[str]) -> Iterator[Slot]:
    """Yield the slots of what is made of a call: `Net()`, `Net().to(device)`, `[Net()]`."""
    binds: dict[cst.CSTNode, Slots] = {
        each.node: each.binds for each in file.flows if isinstance(each.node, _ASSIGNS)
    }
    for call in file.all(cst.Call):
        if last_word(call.func) in makers:
            yield from (slot for o in file.source.around(call) for slot in binds.get(o, ()))


def _returning(file: FileFlows, objects: Slots, makers: set[str]) -> Iterator[str]:
    """Yield the names of the functions that return one."""
    made = {
        outer
        for call in file.all(cst.Call)
        if last_word(call.func) in makers
        for outer in file.source.around(call)
    }
    for each in file.all(cst.Return):
        function = file.function(each)
        is_one = each in made or (each.value is not None and file.named(each.value) & objects)
        if is_one and function is not None:
            yield function.name.value


def _reads_namespace(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and last_word(node.func) in _NAMESPACES and not node.args


def _is_of_none(file: FileFlows, call: cst.Call) -> bool:
    """Whether it asks a module, or the arguments of the program, which hold none of it."""
    asked = call.args[0].value if call.args else None
    if not isinstance(asked, cst.Name):
        return False
    parsed = (each for each in file.flows if _parses(each.node))
    return asked.value in file.imported or any(file.slot(asked) in each.binds for each in parsed)


def _parses(node: cst.CSTNode) -> bool:
    """Whether it binds what an ArgumentParser makes."""
    value = node.value if isinstance(node, cst.Assign) else None
    return isinstance(value, cst.Call) and last_word(value.func) in _PARSE
