"""Which calls run a model's forward pass while autograd records, in this file or another.

A call does when it is a model's own, by its name, or when what it calls in the project does.
Silence when unsure: of several methods that may be meant none may switch gradients off, or need
them, and most must run a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import (
    MODULE,
    AttributeEffect,
    Call,
    Expr,
    FileFacts,
    FunctionFacts,
)
from leakcheck.static.facts.resources import within
from leakcheck.static.facts.targets import (
    are_related,
    callee,
    is_of_python,
    known_calls,
    may_mean,
    plain_functions,
    top_functions,
)
from leakcheck.static.torch_api import is_hook_without_grad

DEEPEST_PASS = 4  # a model that is called through more functions than this is not found
DEEPEST_CALLER = 4

_OFF = Pattern(  # not "winograd"
    r"(?i:(?<![a-z])(<gradients_off>)|grad_enabled|enable_grad$|stop_gradient)|NoGrad"
)
_NEEDS_GRAPH = Pattern(r"<needs_graph>|^(<differentiates>)$")
_FORWARD = Pattern(
    r"^(self\.)?(\w+\.)?(?!_?(<no_pass>)_)(\w*_)?(<networks>|<other_networks>)(_model)?(\.module)?"
    r"(\.forward\w*)?$|^(self\.)?((\w*_)?(<networks>|<other_networks>)\.|(?<=self\.))(\w*_)?"
    r"(<network_parts>|discriminator)(\.module)?(\.forward\w*)?$|"
    r"^self(\.forward(_(?!func|fn)\w+)?)?$"
)
# methods of objects that are somebody else's which, by their names, ask a model
_ASKS = Pattern(
    r"^_?(full_sort_)?(<predicts>|<transcribes>|act|(<evaluations>|predict)_(step|batch))(_\w+)?$"
)
_PREDICTS = Pattern(  # not `infer_lengths`, which works out what a tensor tells
    r"^_?(full_sort_)?(<predicts>)(?!_\w*(<of_tensors>))(_\w+)?$"
)
_NO_NETWORK = Pattern(r"<no_networks>")
_MODULES_OWN = ("parameters", "named_parameters", "eval")  # methods that only modules have
_LOSS = Pattern(r"<computes>|(^|\.)(<short_modules>)$")
_FALSE = Expr("constant", "False")
_NOTHING = Expr("empty")
MANY = 3  # definers of a method: one of them is meant, whatever is imported
_TRAINS = Pattern(r"^_*(<begins_training>)(_\w+)?$")
_DIFFERENTIATED = re.compile(
    r"^_*(forward|((compute|get|calc)_)?loss(es)?|train(ing)?_(step|batch))$"
)


@dataclass(frozen=True)
class Pass:
    """The call of a model, in the file where it stands."""

    file: Linked
    call: Call
    looped: bool = False  # a function on the way to it, other than the first, calls it in a loop


def is_forward(file: Linked, call: Call) -> bool:
    """Tell whether a call is a model's own, by its name: not that of a function."""
    if not _FORWARD.match(call.spelled) and not is_treated_as_module(file.facts, call):
        return False
    if call.spelled == "self" and not _can_be_called(file, call):
        return False
    head, _, name = call.spelled.rpartition(".")
    if head and head != "self" and not call.arguments and call.fate == "chained":
        return False  # `dropdown.model().item(2)` asks for a part, and for no output
    if head and head != "self":  # a method of the project's, `graph.add_layer`, is no model
        if not name.startswith("forward"):
            return next(file.definers(name), None) is None
        known = file.definers(name) if name != "forward" else ()
        return not any(_takes_care(each.file, each.facts.methods[name]) for each in known)
    if head:
        return name.startswith("forward") or not list(_methods(file, call))
    return name not in file.facts.imports and not top_functions(file.facts, name, call.function)


def may_take_care(file: Linked, call: Call) -> bool:
    """Tell whether a plain name may be a wrapper of the project's that switches gradients."""
    if "." in call.spelled or is_treated_as_module(file.facts, call):
        return False
    wrappers = (m for m in file.definers("__call__") if not m.file.is_module(m))
    return any(_takes_care(m.file, m.facts.methods["__call__"]) for m in wrappers)


def switches_in_forward(member: Member) -> bool:
    """Tell whether the forward of a module, its own or inherited, switches gradients itself."""
    forwards = (
        (each.file, each.facts.methods["forward"])
        for each in member.file.lineage(member)
        if "forward" in each.facts.methods
    )
    nearest = next(forwards, None)
    if nearest is None:
        return False
    file, index = nearest
    return _takes_care(file, index)


def has_parts(member: Member) -> bool:
    """Tell whether a module makes or is given others, or parameters: else it learns nothing."""
    file = member.file
    if file.foreign_bases(member) - {"torch.nn.Module", "object", "abc.ABC"}:
        return True
    return any(_is_part(each, use) for each in file.lineage(member) for use in each.binds())


def _is_part(member: Member, use: AttributeEffect) -> bool:
    value = use.value
    if value is None or not sets_up(member.file.facts, use.function):
        return False
    made = member.file.class_called(value.text) if value.kind == "call" else None
    module = made is not None and member.file.is_module(made)
    return module or value.text.startswith("torch.nn.") or value.kind == "name"


def _can_be_called(file: Linked, call: Call) -> bool:
    """Whether the class around, or one derived from it, may have a `__call__`."""
    around = file.class_around(call)
    if around is None or file.foreign_bases(around) - {"object"}:
        return True
    name = around.facts.name
    classes = (each for facts in file.everywhere(name) for each in facts.classes)
    derived = any(base.rpartition(".")[2] == name for each in classes for base in each.bases)
    return derived or any("__call__" in member.facts.methods for member in file.lineage(around))


def trains(name: str) -> bool:
    """Tell whether a function of this name trains."""
    return _TRAINS.match(name) is not None


def is_differentiated(function: FunctionFacts) -> bool:
    """Tell whether, by its name, somebody differentiates what a function returns or leaves."""
    return _DIFFERENTIATED.match(function.name) is not None


def is_treated_as_module(facts: FileFacts, call: Call) -> bool:
    """Tell whether the file asks what is called for its parameters, or switches its mode."""
    model = call.spelled.removesuffix(".forward")
    if model in ("self", "super") or _LOSS.search(model):
        return False
    asked = (each for name in _MODULES_OWN for each in facts.calls_by_name.get(name, ()))
    receivers = [each.receiver for each in asked if each.receiver and not each.arguments]
    known = (("name", model), ("item", model.rpartition(".")[0]))  # one of a dict: `nets[name]`
    return any((each.kind, each.text) in known for each in receivers)


def is_switch(word: str) -> bool:
    """Tell whether a word, by itself, is one that switches gradients."""
    return _OFF.search(word) is not None


def differentiates(word: str) -> bool:
    """Tell whether a function of this name needs the graph of what it is given."""
    return _NEEDS_GRAPH.search(word) is not None


def is_off(call: Call) -> bool:
    """Tell whether a call stands under a manager that switches gradients, off or by a value."""
    return any(_OFF.search(manager) for manager in call.managers)


def switched(calls: Iterable[Call]) -> bool:
    """Tell whether gradients are switched for what follows: `torch.no_grad().__enter__()`."""
    return any(_OFF.search(c.method) and c.fate in ("dropped", "chained", "bound") for c in calls)


def switches(facts: FileFacts, index: int) -> bool:
    """Tell whether a function switches gradients for all of its body."""
    off = any(_OFF.search(each) for each in facts.functions[index].decorators)
    return off or switched(facts.calls_in(index))


def _switches_all(facts: FileFacts) -> bool:
    """Whether a file switches gradients off as it is run, for all that it calls."""
    calls = facts.calls_by_name.get("set_grad_enabled", ())
    own = (call for call in calls if call.function == MODULE and call.fate == "dropped")
    return any(call.argument("mode", 0) == _FALSE for call in own)


def is_called_by_framework(function: FunctionFacts) -> bool:
    """Tell whether Lightning calls a method, without gradients."""
    return bool(function.owner) and is_hook_without_grad(function.name)


def is_careful(facts: FileFacts, index: int) -> bool:
    """Tell whether a function switches gradients anywhere in its body."""
    calls = facts.calls_in(index)
    return switches(facts, index) or any(is_off(c) or is_switch(c.method) for c in calls)


def freezes(file: Linked, function: FunctionFacts) -> bool:
    """Tell whether the class around a function, or a base of it, freezes parameters."""
    owner = file.facts.class_named(function.owner)
    return owner is not None and _freezes(Member(file, owner), one=True)


def asks_frozen(inner: Pass) -> bool:
    """Tell whether the model that is asked is made of a class that freezes parameters.

    It is made beside the call, or known by the method that is called.
    """
    file, call = inner.file, inner.call
    head, _, method = call.spelled.removesuffix(".forward").rpartition(".")
    made = [each for each in file.facts.calls_in(call.function) if each.bound == (head or method)]
    owners = [file.class_called(each.qualified or each.spelled) for each in made]
    if head not in ("", "self") and not made:
        owners = list(file.definers(method))
    known = [owner for owner in owners if owner is not None]
    frozen = all(_freezes(owner, one=False) or _makes_frozen(owner) for owner in known)
    return bool(owners) and len(known) == len(owners) and frozen


def _freezes(owner: Member, *, one: bool) -> bool:
    """Whether a method of a class freezes parameters, or `one`."""
    members = owner.file.lineage(owner)
    methods = ((member.file.facts, index) for member in members for index, _ in member.methods())
    return any(freezes_in(facts, index, one=one) for facts, index in methods)


def _makes_frozen(owner: Member) -> bool:
    """Whether a function that a class's constructor calls freezes all parameters there."""
    for member in owner.file.lineage(owner):
        making = member.facts.methods.get("__init__")
        calls = member.file.facts.calls_in(making) if making is not None else ()
        made = filter(None, (callee(member.file, call) for call in calls))
        if any(freezes_in(home.facts, index, one=False) for home, index in made):
            return True
    return False


def may_be_off_around(file: Linked, call: Call) -> bool:
    """Tell whether a manager of the project around a call freezes parameters, or may switch them.

    `with self._in_mode(False):`, which is a `torch.set_grad_enabled(training)` inside.
    """
    return any(
        function.name == name and (freezes_in(facts, index) or is_careful(facts, index))
        for name in (spelled.rpartition(".")[2] for spelled in call.managers)
        for facts in file.everywhere(name)
        for index, function in enumerate(facts.functions)
    )


def freezes_in(facts: FileFacts, index: int, *, one: bool = True) -> bool:
    """Tell whether a function freezes parameters; not `one`: no single one, outside of a loop."""
    uses = (u for u in facts.uses_by_name.get("requires_grad", ()) if u.function == index)
    if any(use.value == _FALSE and (one or use.loops) for use in uses):
        return True
    calls = facts.calls_by_name.get("requires_grad_", ())
    return any(c.function == index and c.argument("", 0) == _FALSE for c in calls)


def only_evaluates(facts: FileFacts) -> bool:
    """Tell whether nothing in a file trains, differentiates or puts a model in training mode."""
    if any("grad" in use.name for use in facts.uses):
        return False
    return not any(_NEEDS_GRAPH.search(name) or name == "train" for name in facts.calls_by_name)


def needs_graph(facts: FileFacts, function: int, until: int = 0) -> bool:
    """Tell whether a function differentiates, trains or freezes; `until`: not in later loops."""
    inside = set(within(facts, function))
    for call in (call for each in inside for call in facts.calls_in(each)):
        needs = _NEEDS_GRAPH.search(call.method) or _is_optimizer_step(call)
        later = until and call.function == function and call.loops and call.at.line > until
        if needs and not later:
            return True
    uses = (use for use in facts.uses if use.function in inside and "grad" in use.name)
    return any(not until or not use.loops or use.at.line <= until for use in uses)


def _called(file: Linked, call: Call) -> tuple[Linked, int] | None:
    """Return the function called: by its name, of self, or of an object that is made beside it."""
    head, _, method = call.spelled.rpartition(".")
    for made in file.facts.calls_in(call.function) if head and "." not in head else ():
        owner = file.class_called(made.qualified or made.spelled) if made.bound == head else None
        for member in owner.file.lineage(owner) if owner is not None else ():
            if method in member.facts.methods:
                return member.file, member.facts.methods[method]
    return callee(file, call)


def _is_optimizer_step(call: Call) -> bool:
    return call.method == "step" and "opt" in call.spelled


def needs_graph_behind(facts: FileFacts, function: int, line: int) -> bool:
    """Tell whether a function differentiates or trains behind a line."""
    calls = (call for call in facts.calls_in(function) if call.at.line > line)
    return any(_NEEDS_GRAPH.search(c.method) or _is_optimizer_step(c) for c in calls)


class Passes:
    """What calls of one file lead to; each function of the project is looked into once."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._inside: dict[tuple[str, int], Pass | None] = {}
        self._excused: dict[tuple[str, int], bool] = {}
        self._off: dict[tuple[str, int], bool] = {}
        self._asking: dict[tuple[str, int, int], bool] = {}

    def passed(self, file: Linked, call: Call, depth: int = 0) -> Pass | None:
        """Return the model's call that a call is, or leads to, with gradients on."""
        if is_off(call):
            return None
        if is_forward(file, call):
            return Pass(file, call)
        if depth == DEEPEST_PASS:
            return None
        targets = list(_targets(file, call))
        found: list[Pass] = []
        for home, index in targets:
            if is_careful(home.facts, index) or needs_graph(home.facts, index):
                return None
            inner = self._in(home, index, depth + 1)
            found += [inner] if inner is not None else []
        return found[0] if 2 * len(found) > len(targets) else None

    def of_module(self, file: Linked, call: Call) -> Pass | None:
        """Return the pass in the method that a call names, where modules alone have one of it."""
        definers = list(file.definers(call.method)) if "." in call.spelled else []
        if is_off(call) or not definers or not all(m.file.is_module(m) for m in definers):
            return None
        found = [self._in(m.file, m.facts.methods[call.method], 1) for m in definers]
        return found[0] if all(found) else None

    def _in(self, home: Linked, index: int, depth: int) -> Pass | None:
        """Return the first pass in a function; a module's method that is asked for more is one."""
        key = (home.path, index)
        if key in self._inside:
            return self._inside[key]
        self._inside[key] = None  # while it calls itself
        for each in home.facts.calls_in(index):
            if _leads_to_care(home, each):
                return None
            if (found := self.passed(home, each, depth)) is not None:
                self._inside[key] = replace(found, looped=found.looped or each.loops > 0)
                return self._inside[key]
        self._inside[key] = _asked_module(home, index)
        return self._inside[key]

    def asks_for_gradients(self, file: Linked, index: int, depth: int = 0) -> bool:
        """Tell whether something in the project that a function calls differentiates or freezes.

        What trains by its name does so for itself, and a manager for its block. A second try in
        a handler is not asked: it may be there because the first had gradients off.
        """
        key = (file.path, index, depth)
        if key not in self._asking:
            calls = (c for c in file.facts.calls_in(index) if c.fate != "managed")
            called = (_called(file, call) for call in calls if not trains(call.method))
            self._asking[key] = any(
                needs_graph(home.facts, inner)
                or (depth < DEEPEST_PASS and self.asks_for_gradients(home, inner, depth + 1))
                for home, inner in filter(None, called)
            )
        return self._asking[key]

    def is_excused(self, file: Linked, index: int, depth: int = 0) -> bool:
        """Tell whether some caller in the project switches gradients off, or differentiates.

        A function that is handed on by its name, or found by one that is computed, is excused as
        well: nobody knows who calls it.
        """
        key = (file.path, index)
        if key not in self._excused:
            self._excused[key] = False  # while it is called by itself
            self._excused[key] = self._called_by(file, index, depth)
        return self._excused[key]

    def is_entered_off(self, file: Linked, index: int) -> bool:
        """Tell whether a method is reached by calling its object, with gradients off.

        Other callers say nothing of those that are not in the project.
        """
        method = file.facts.functions[index]
        for facts, call in file.calls_of(method.name):
            caller, home = facts.function(call.function), file.of(facts)
            entered = caller is not None and caller.name == "__call__"
            if not entered or not may_mean(home, call, file, method):
                continue
            if switches(facts, call.function) or self.is_excused(home, call.function):
                return True
        return False

    def only_runs_off(self, file: Linked, index: int, depth: int = 0) -> bool:
        """Tell whether all that call a function in the project do so with gradients off."""
        key = (file.path, index)
        if key not in self._off:
            self._off[key] = False  # while it is called by itself
            found = known_calls(file, file.facts.functions[index])
            calls = [each for each in found if not is_of_python(each[1])]
            self._off[key] = bool(calls) and all(self._is_off(file, *c, depth) for c in calls)
        return self._off[key]

    def _is_off(self, file: Linked, facts: FileFacts, call: Call, depth: int) -> bool:
        caller = facts.function(call.function)
        if is_off(call) or _switches_all(facts):
            return True
        if caller is None:
            return False
        if switches(facts, call.function) or is_called_by_framework(caller):
            return True
        deeper = depth < DEEPEST_CALLER
        return deeper and self.only_runs_off(file.of(facts), call.function, depth + 1)

    def _called_by(self, file: Linked, index: int, depth: int) -> bool:
        function = file.facts.functions[index]
        special = function.name.startswith("__") and function.name != "__call__"
        if _TRAINS.match(function.name) or special:
            return False
        if _is_renamed(file.facts, function.name):
            return True
        if depth == 0 and (_is_handed_on(file.facts, function.name) or _is_chosen(file, function)):
            return True
        for facts, call in file.calls_of(function.name):
            home = file.of(facts)
            if not may_mean(home, call, file, function):
                continue
            if is_off(call) or _switches_all(facts):
                return True
            if call.function >= 0 and (
                switches(facts, call.function)
                or is_called_by_framework(facts.functions[call.function])
                or is_differentiated(facts.functions[call.function])
            ):
                return True
            if call.function < 0 or depth == DEEPEST_CALLER:
                continue
            if self.is_excused(home, call.function, depth + 1):
                return True
        return False


def _takes_care(file: Linked, index: int) -> bool:
    """Whether a function switches gradients, or what it calls does."""
    facts = file.facts
    return is_careful(facts, index) or any(_leads_to_care(file, c) for c in facts.calls_in(index))


def _leads_to_care(file: Linked, call: Call) -> bool:
    """Whether a call, of a function or of a method of self, switches gradients itself."""
    head, _, _ = call.spelled.rpartition(".")
    targets = _targets(file, call) if head in ("", "self") else ()
    return any(is_careful(home.facts, index) for home, index in targets)


def _is_handed_on(facts: FileFacts, name: str) -> bool:
    """Whether a file gives a function of the name to others, who may call it as they like."""
    given = (argument.value for call in facts.calls for argument in call.arguments)
    return any(v.kind == "name" and v.text in (name, f"self.{name}") for v in given)


def _is_chosen(file: Linked, function: FunctionFacts) -> bool:
    """Whether its class chooses methods by computed names: `getattr(self, f"{mode}_step")`.

    Not attributes, as `getattr(self, f"_{kind}", [])` does by its default.
    """
    owner = file.facts.class_named(function.owner)
    for member in file.lineage(Member(file, owner)) if owner is not None else ():
        methods = set(member.facts.methods.values())
        for call in member.file.facts.calls_by_name.get("getattr", ()):
            given = (each.value for each in call.arguments)
            holder, name, default, *_ = *given, _NOTHING, _NOTHING, _NOTHING
            own = call.function in methods and holder == Expr("name", "self")
            of_data = default != _NOTHING and default.kind in ("empty", "constant")
            of_data = of_data and default != Expr("constant", "None")
            if own and name.kind not in ("constant", "name", "empty") and not of_data:
                return True
    return False


def _is_renamed(facts: FileFacts, name: str) -> bool:
    """Whether a function has another name as well, by which it may be called."""
    values = [use.value for use in facts.uses if use.role == "bind" and use.value is not None]
    values += [binding.value for binding in facts.bindings]
    return any(v.kind == "name" and v.text in (name, f"self.{name}") for v in values)


def _asked_module(home: Linked, index: int) -> Pass | None:
    """Return the first call of a module's method that, by its name, asks for a prediction."""
    facts, function = home.facts, home.facts.functions[index]
    owner = facts.class_named(function.owner)
    calls = facts.calls_in(index)
    if owner is None or not calls or not _PREDICTS.match(function.name) or is_careful(facts, index):
        return None
    handed_on = any(map(_hands_itself_on, calls))
    asked = home.is_module(Member(home, owner)) and not (handed_on or _raises_only(function))
    return Pass(home, calls[0]) if asked else None


def _raises_only(function: FunctionFacts) -> bool:
    raises = any("NotImplemented" in value.text for value, _ in function.raises)
    return raises and not function.returns


def _targets(file: Linked, call: Call) -> Iterator[tuple[Linked, int]]:
    """Yield the functions of the project that a call may mean, each in its file."""
    head, dot, method = call.spelled.rpartition(".")
    if not dot:
        yield from plain_functions(file, method, call.function)
    elif head == "self":
        yield from _methods(file, call)
    elif head in file.facts.imports and (home := file.imported_module(head)) is not None:
        yield from ((home, index) for index in top_functions(home.facts, method))
    elif _ASKS.match(method) and not (_NO_NETWORK.search(head) or _hands_itself_on(call)):
        found = list(file.definers(method))
        known = [member for member in found if _knows(file, member)]
        if known or len(found) >= MANY:
            yield from ((m.file, m.facts.methods[method]) for m in known or found)


def _hands_itself_on(call: Call) -> bool:
    """Whether an object gives itself to somebody who runs it, `trainer.predict(self, loader)`."""
    return any(argument.value == Expr("name", "self") for argument in call.arguments)


def _knows(file: Linked, member: Member) -> bool:
    """Whether a file defines a class, or imports it or its module."""
    if file.path == member.file.path:
        return True
    for name in file.facts.imports:
        home = file.home(name)
        if home is not None and home[0].path == member.file.path and home[1] == member.facts.name:
            return True
        module = file.imported_module(name)
        if module is not None and module.path == member.file.path:
            return True
    return False


def _methods(file: Linked, call: Call) -> Iterator[tuple[Linked, int]]:
    around = file.class_around(call)
    if around is None:
        return
    own = file.own_method(call)
    if own is not None and not _raises_only(own[0].facts.functions[own[1]]):
        yield own
        return
    for other in file.definers(call.method):
        index = other.facts.methods[call.method]
        meant = _ASKS.match(call.method) or (own is not None and are_related(other, around))
        if meant and not _raises_only(other.file.facts.functions[index]):
            yield other.file, index
