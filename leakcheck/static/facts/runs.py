"""How often does a function run, and how often is an object made?

Only while objects are set up, or again and again?
"""

from __future__ import annotations

from collections.abc import Iterable

from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import MODULE, Call, FileFacts, FunctionFacts
from leakcheck.static.facts.passes import is_differentiated
from leakcheck.static.facts.targets import known_calls, may_mean
from leakcheck.static.torch_api import framework


def runs_once(file: Linked, index: int, depth: int = 0) -> bool:
    """Tell whether it is shown that a function, or a script's own code, runs once in a program.

    The program itself begins it, or calls it at one place, in a function that runs once.
    """
    function = file.facts.method_around(index)
    if function is None or "main" in function.name or _is_entry(file.facts, function):
        return True
    calls = [
        (facts, call)
        for facts, call in file.calls_of(function.name)
        if may_mean(file.of(facts), call, file, function)
    ]
    if len(calls) != 1 or depth == _DEEPEST_CALL:
        return not calls and file.path.endswith("__main__.py")
    facts, call = calls[0]
    return not call.loops and runs_once(file.of(facts), call.function, depth + 1)


_DEEPEST_CALL = 3


def _is_entry(facts: FileFacts, function: FunctionFacts) -> bool:
    """Whether a command line or a new process begins with it, as by `fire.Fire(train)`."""
    if any(name.rpartition(".")[2] in ("main", "command") for name in function.decorators):
        return True
    return any(
        given.value.kind == "name" and given.value.text == function.name
        for call in facts.calls
        if call.method in ("Fire", "spawn", "Process", "run", "launch")
        for given in call.arguments
    )


def runs_in_set_up(file: Linked, index: int) -> bool:
    """Tell whether a method is called only where objects are made or told what to be."""
    calls = known_calls(file, file.facts.functions[index])
    within = [sets_up(facts, call.function) for facts, call in calls if call.function != MODULE]
    return bool(calls) and len(within) == len(calls) and all(within)


def fails_the_program(file: Linked, index: int, depth: int = 0) -> bool:
    """Tell whether an error in a function ends the process: only a script's own code leads to it.

    Every call in the project stands in no `try`, in a script or in such a function.
    """
    function = file.facts.functions[index]
    if function.owner or depth == _DEEPEST_MAKER:
        return False
    calls = [
        (f, c) for f, c in known_calls(file, function) if c.function != index or f != file.facts
    ]
    return bool(calls) and all(
        call.handled == ""
        and (call.function == MODULE or fails_the_program(file.of(facts), call.function, depth + 1))
        for facts, call in calls
    )


def is_made_per_call(member: Member) -> bool:
    """Tell whether the project makes objects of a class, or of one below it, where work is done.

    Such an object goes with the sequence, the search or the call that it is made for. One that a
    set-up makes, or that nobody in the project does, may live as long as the program.
    """
    file = member.file
    makes = [(facts, call) for name in _names_of(member) for facts, call in file.calls_of(name)]
    return bool(makes) and all(_comes_and_goes(file, *each) for each in makes)


def is_made(member: Member) -> bool:
    """Tell whether the project makes objects of a class, or of one below it, at all."""
    return any(any(member.file.calls_of(name)) for name in _names_of(member))


def is_made_again(member: Member) -> bool:
    """Tell whether it is shown that objects of a class come and go while a program runs.

    The project makes one where work is done, or an object makes more of its own kind.
    """
    file = member.file
    makes = ((facts, call) for name in _names_of(member) for facts, call in file.calls_of(name))
    if any(_comes_and_goes(file, *each) for each in makes):
        return True
    return any(map(_makes_its_kind, file.lineage(member)))


def _makes_its_kind(member: Member) -> bool:
    """`type(self)(...)`, `self.__class__(...)` or its name, in a method that sets nothing up."""
    facts = member.file.facts
    calls = (call for index, _ in member.methods() for call in facts.calls_in(index))
    return any(
        call.spelled in ("self.__class__", member.facts.name) or _is_asked_for_type(facts, call)
        for call in calls
        if not sets_up(facts, call.function)
    )


def _is_asked_for_type(facts: FileFacts, call: Call) -> bool:
    """Whether it is `type(self)` that is called: the call within begins at the same place."""
    near = facts.calls_by_name.get("type", ())
    return call.spelled == "" and any(
        each.at.line == call.at.line
        and each.at.column == call.at.column
        and [given.value.text for given in each.arguments] == ["self"]
        for each in near
    )


def is_made_once(member: Member, depth: int = 0) -> bool:
    """Tell whether the project makes objects of a class only for a whole run: one for a trainer.

    What an object makes for itself is made as often as that object.
    """
    file = member.file
    makes = [(facts, call) for name in _names_of(member) for facts, call in file.calls_of(name)]
    scripts = [id(facts) for facts, call in makes if call.function == MODULE]
    once = len(scripts) == len(set(scripts))  # one that is made twice in a script was made anew
    return bool(makes) and once and all(_is_for_a_run(file, *each, depth) for each in makes)


def _is_for_a_run(file: Linked, facts: FileFacts, call: Call, depth: int) -> bool:
    if call.loops or depth == _DEEPEST_MAKER:
        return False
    if call.function == MODULE:
        return True
    function = facts.functions[call.function]
    if call.fate == "returned" or any(value.text == call.bound for value in function.returns):
        wanted = list(file.calls_of(function.name))
        return bool(wanted) and all(_is_for_a_run(file, *each, depth + 1) for each in wanted)
    owner = file.of(facts).class_around(call)
    if owner is None and function.around < 0 and facts is file.facts:  # its own file's `main()`
        wanted = list(file.calls_of(function.name))
        return bool(wanted) and all(_is_for_a_run(file, *each, depth + 1) for each in wanted)
    if owner is None or not (call.bound.startswith("self.") or sets_up(facts, call.function)):
        return False
    return _trains(owner) or is_made_once(owner, depth + 1)


_DEEPEST_MAKER = 3


def calls_backward(calls: Iterable[Call]) -> bool:
    """Tell whether one of these calls runs a backward pass."""
    methods = framework("backward", "methods")
    return any(call.method in methods for call in calls)


def trains_in(file: Linked, name: str) -> bool:
    """Tell whether a function of the file, or one that it imports, trains: `train_one_epoch`."""
    facts, known_as = file.imported(name) or (file.facts, name)
    functions = enumerate(facts.functions)
    found = (i for i, each in functions if each.name == known_as and not each.owner)
    return any(calls_backward(facts.calls_in(index)) for index in found)


def _trains(member: Member) -> bool:
    """Whether a class is what a training is run by, of which a program has one.

    It calls backward, or has a method whose result a framework differentiates. One that zeroes
    the gradients and never steps explains a model, as often as somebody asks.
    """
    if member.file.is_module(member):
        return False
    kin = member.file.lineage(member)
    called = {
        call.method
        for each in kin
        for index, _ in each.methods()
        for call in each.file.facts.calls_in(index)
    }
    if {"backward", "zero_grad"} <= called and not any("step" in name for name in called):
        return False
    asked = any(is_differentiated(function) for each in kin for _, function in each.methods())
    return asked or "backward" in called


def _names_of(member: Member) -> set[str]:
    """Return the names of a class and of those that are derived from it by its name."""
    name = member.facts.name
    classes = (each for facts in member.file.everywhere(name) for each in facts.classes)
    below = (each.name for each in classes if name in {b.rpartition(".")[2] for b in each.bases})
    return {name, *below}


def _comes_and_goes(file: Linked, facts: FileFacts, call: Call) -> bool:
    """Whether an object is made at each turn of some work, put under a key there, or used up."""
    method = facts.method_around(call.function)
    if method is None or (call.fate == "bound" and not call.bound):  # `self.parts[index] = Part()`
        return method is not None and not method.name.startswith("__")
    given = call.bound != "" and any(value.text == call.bound for value in method.returns)
    if call.fate == "returned" or (given and not call.loops):
        wanted = list(file.calls_of(method.name))
        return bool(wanted) and all(c.loops and not sets_up(f, c.function) for f, c in wanted)
    if sets_up(facts, call.function) or call.bound.startswith("self."):
        return False
    return call.loops > 0 or call.fate == "chained"


def making_methods(member: Member) -> set[int]:
    """Return the constructor of a class and the methods that nobody calls but those."""
    linked = member.file
    making = {index for name, index in member.facts.methods.items() if name == "__init__"}
    for name, index in member.facts.methods.items() if making else ():
        calls = list(linked.calls_of(name))
        if calls and all(
            facts is linked.facts and call.spelled == f"self.{name}" and call.function in making
            for facts, call in calls
        ):
            making.add(index)
    return making
