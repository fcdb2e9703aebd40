"""What is computed from what in the files of a program: within them, and through their calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from leakcheck.cure.file_flows import FileFlows, ValueFlow
from leakcheck.cure.reads import last_word
from leakcheck.cure.slots import CALLS, ArgumentSlots, Slot, Slots


@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of several files, by path, with what their calls hand to parameters."""

    files: Mapping[str, FileFlows]

    def derived(self, slots: Collection[Slot]) -> Slots:
        """Return slots and those of what is computed from them."""
        known, left = set(slots), [*slots]
        while left:
            more = self._from.get(left.pop(), frozenset()) - known
            known |= more
            left += more
        return frozenset(known)

    def origins(self, slots: Slots) -> Slots:
        """Return slots and those where the same objects come from: callers' and others' names."""
        return _closure(slots, [(bound, origin) for origin, bound in self._same])

    def aliases(self, slots: Slots) -> Slots:
        """Return slots and those that are bound to just their values, and parameters."""
        return _closure(slots, self._same)

    @cached_property
    def _same(self) -> list[tuple[Slots, Slots]]:
        """Variables and attributes, and those that are bound to just their value."""
        found = []
        for file, handed in self._all_handed.items():
            found += [(file.named(argument.value), bound) for argument, bound in handed]
            for flow in file.flows:
                if isinstance(flow.node, (cst.Assign, cst.AnnAssign)) and flow.node.value:
                    found.append((file.named(flow.node.value), flow.binds))
        return [(one, other) for one, other in found if one and other]

    @cached_property
    def _from(self) -> dict[Slot, Slots]:
        found: dict[Slot, set[Slot]] = {}
        for _, flow in self.all:
            for slot in flow.reads:
                found.setdefault(slot, set()).update(flow.binds)
        filled = frozenset[Slot]().union(*(file.filled for file in self.files.values()))
        for file, handed in self._all_handed.items():
            for argument, taken in handed:  # what a function puts into its argument
                for slot in taken & filled:
                    found.setdefault(slot, set()).update(file.named(argument.value))
        return {slot: frozenset(bound) for slot, bound in found.items()}

    @cached_property
    def all(self) -> list[tuple[str, ValueFlow]]:
        """Every flow, with the path of its file."""
        found = []
        for path, file in self.files.items():
            handed = [flow for call in file.all(cst.Call) for flow in self._handed(file, call)]
            decorated = (
                flow for each in file.all(cst.FunctionDef) for flow in self._wrapped(file, each)
            )
            flows = (
                each for each in (*file.flows, *handed, *decorated) if each.binds and each.reads
            )
            found += [(path, each) for each in flows]
        return found

    @cached_property
    def _functions(self) -> dict[str, list[ArgumentSlots]]:
        found: dict[str, list[ArgumentSlots]] = {}
        for file in self.files.values():
            for name, every in file.parameters.items():
                found.setdefault(name, []).extend(every)
        return found

    @cached_property
    def _objects(self) -> list[ArgumentSlots]:
        """What may be called where an object is: modules, and functions that are values."""
        named = dict.fromkeys(CALLS)
        for file in self.files.values():
            named.update(dict.fromkeys(sorted(file.handed_on)))
        return [each for name in named for each in self._functions.get(name, [])]

    @cached_property
    def _all_handed(self) -> dict[FileFlows, list[tuple[cst.Arg, Slots]]]:
        """The arguments of all calls of each file, and what may take each."""
        return {
            file: [each for call in file.all(cst.Call) for each in self._arguments(file, call)]
            for file in self.files.values()
        }

    def _handed(self, file: FileFlows, call: cst.Call) -> Iterator[ValueFlow]:
        """Yield what a call hands to the parameters of what may be called."""
        for argument, taken in self._arguments(file, call):
            yield ValueFlow(call, file.read_by(argument.value), taken)
        for argument in call.args:  # Thread(target=f, args=(kept,)), partial(f, kept)
            for each in self._functions.get(last_word(argument.value), []):
                given = frozenset[Slot]().union(*(file.read_by(one.value) for one in call.args))
                yield ValueFlow(call, given, each.all)

    def _wrapped(self, file: FileFlows, function: cst.FunctionDef) -> Iterator[ValueFlow]:
        """Yield what hands a function's results to its decorators, and to functions in them."""
        for each in function.decorators:
            made = each.decorator.func if isinstance(each.decorator, cst.Call) else each.decorator
            taken = self._of_decorators.get(last_word(made), frozenset())
            yield ValueFlow(each, file.result_of(function), taken)

    @cached_property
    def _of_decorators(self) -> dict[str, Slots]:
        """The parameters of functions by their names, and of those within them."""
        found: dict[str, Slots] = {}
        for file in self.files.values():
            for inner in file.all(cst.FunctionDef):
                own = frozenset[Slot]().union(
                    *(each.all for each in file.parameters.get(inner.name.value, []))
                )
                around = (
                    each for each in file.source.around(inner) if isinstance(each, cst.FunctionDef)
                )
                for each in (inner, *around):
                    name = each.name.value
                    found[name] = found.get(name, frozenset()) | own
        return found

    def _arguments(self, file: FileFlows, call: cst.Call) -> Iterator[tuple[cst.Arg, Slots]]:
        """Yield the arguments of a call, and what may take each."""
        called = self._functions.get(last_word(call.func), [])
        if not called and file.is_of_object(call):
            called = self._objects
        for each in called:
            for at, argument in enumerate(call.args):
                yield argument, each.taking(argument, at)


def _closure(slots: Slots, steps: Collection[tuple[Slots, Slots]]) -> Slots:
    known = set(slots)
    while True:
        found = {one for before, after in steps if before & known for one in after}
        if known.issuperset(found):
            return frozenset(known)
        known |= found
