"""What is computed from what in the files of a program: within them, and through their calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from leakcheck.cure.file_flows import CALLS, FileFlows, Flow, Place, Places, last_word

_MAKES_OBJECTS = ("__init__", "__new__", "__post_init__")


@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of several files, by path, with what their calls hand to parameters."""

    files: Mapping[str, FileFlows]

    def derived(self, places: Collection[Place]) -> Places:
        """Return places and those of what is computed from them."""
        known, left = set(places), [*places]
        while left:
            more = self._from.get(left.pop(), frozenset()) - known
            known |= more
            left += more
        return frozenset(known)

    def origins(self, places: Places) -> Places:
        """Return places and those where the same objects come from: callers' and others' names."""
        return _closure(places, [(bound, origin) for origin, bound in self._same])

    def aliases(self, places: Places) -> Places:
        """Return places and those that are bound to just their values, and parameters."""
        return _closure(places, self._same)

    @cached_property
    def _same(self) -> list[tuple[Places, Places]]:
        """Variables and attributes, and those that are bound to just their value."""
        found = []
        for file in self.files.values():
            handed = (each for call in file.all(cst.Call) for each in self._arguments(file, call))
            found += [(file.named(argument.value), bound) for argument, bound in handed]
            found += [
                (file.named(each.node.value), each.binds)
                for each in file.flows
                if isinstance(each.node, cst.Assign)
            ]
        return found

    @cached_property
    def _from(self) -> dict[Place, Places]:
        found: dict[Place, set[Place]] = {}
        for _, flow in self.all:
            for place in flow.reads:
                found.setdefault(place, set()).update(flow.binds)
        return {place: frozenset(bound) for place, bound in found.items()}

    @cached_property
    def all(self) -> list[tuple[str, Flow]]:
        """Every flow, with the path of its file."""
        found = []
        for path, file in self.files.items():
            handed = [flow for call in file.all(cst.Call) for flow in self._handed(file, call)]
            flows = (each for each in (*file.flows, *handed) if each.binds and each.reads)
            found += [(path, each) for each in flows]
        return found

    @cached_property
    def _functions(self) -> dict[str, list[_Parameters]]:
        """The parameters of functions by what is called: a class for what makes its objects."""
        found: dict[str, list[_Parameters]] = {}
        for file in self.files.values():
            for each in file.all(cst.FunctionDef):
                name = each.name.value
                owner = next(
                    (o for o in file.source.around(each) if isinstance(o, cst.ClassDef)), None
                )
                if name in _MAKES_OBJECTS and owner is not None:
                    found.setdefault(owner.name.value, []).append(_Parameters(file, each))
                found.setdefault(name, []).append(_Parameters(file, each))
        return found

    def _handed(self, file: FileFlows, call: cst.Call) -> Iterator[Flow]:
        """Yield what a call hands to the parameters of what may be called."""
        for argument, taken in self._arguments(file, call):
            yield Flow(call, file.read_by(argument.value), taken)
        for argument in call.args:  # Thread(target=f, args=(kept,)), partial(f, kept)
            for each in self._functions.get(last_word(argument.value), []):
                given = frozenset[Place]().union(*(file.read_by(one.value) for one in call.args))
                yield Flow(call, given, each.all)

    def _arguments(self, file: FileFlows, call: cst.Call) -> Iterator[tuple[cst.Arg, Places]]:
        """Yield the arguments of a call, and what may take each."""
        called = self._functions.get(last_word(call.func), [])
        if not called and file.is_of_object(call):
            called = [each for name in CALLS for each in self._functions.get(name, [])]
        for each in called:
            for at, argument in enumerate(call.args):
                yield argument, each.taking(argument, at)


def _closure(places: Places, steps: Collection[tuple[Places, Places]]) -> Places:
    known = set(places)
    while True:
        found = {one for before, after in steps if before & known for one in after}
        if known.issuperset(found):
            return frozenset(known)
        known |= found


@dataclass(frozen=True, eq=False)
class _Parameters:
    """The places of the parameters of one function."""

    file: FileFlows
    function: cst.FunctionDef

    @cached_property
    def _in_order(self) -> list[cst.Param]:
        params = self.function.params
        every = [*params.posonly_params, *params.params]
        bound = bool(every) and every[0].name.value in ("self", "cls")
        return every[1:] if bound else every

    @cached_property
    def all(self) -> Places:
        params = self.function.params
        stars = (
            each for each in (params.star_arg, params.star_kwarg) if isinstance(each, cst.Param)
        )
        every = (*self._in_order, *params.kwonly_params, *stars)
        return frozenset(self.file.place(each.name) for each in every)

    def taking(self, argument: cst.Arg, at: int) -> Places:
        """Return the places that may take an argument of a call, the `at`-th."""
        if argument.star:
            return self.all
        if argument.keyword is not None:
            name = argument.keyword.value
            named = frozenset(place for place in self.all if place[1] == name)
            return named or self._rest(self.function.params.star_kwarg)
        if at < len(self._in_order):
            return frozenset({self.file.place(self._in_order[at].name)})
        return self._rest(self.function.params.star_arg)

    def _rest(self, param: object) -> Places:
        return (
            frozenset({self.file.place(param.name)})
            if isinstance(param, cst.Param)
            else frozenset()
        )
