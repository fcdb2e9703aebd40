"""response.stream = Stream(response): each holds the other, and only the collector frees them."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.model import Confidence, Evidence
from leakcheck.static.facts.link import Linked, Member, sets_up
from leakcheck.static.facts.model import AttributeEffect, Call, Expr, FileFacts
from leakcheck.static.facts.runs import is_made_again
from leakcheck.static.facts.weight import holds_tensors
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class BackReference(Rule):
    """Objects that hold what holds them, made while a program runs."""

    code = "LK213"
    summary = "two objects hold each other, so only the garbage collector frees them"
    help = "hold the owner by weakref.ref, or drop one side when the work is done"
    words = ("self",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what is bound on an object, and at what is told of its owner."""
        linked = module.facts
        facts = linked.facts
        for call in facts.calls:
            holder = call.bound.rpartition(".")[0]
            owned = holder == "self" and sets_up(facts, call.function)
            if owned or not _comes_and_goes(facts, call, holder):
                continue
            if holder == "self" and not _is_worth_it(linked, call.function):
                continue
            kept = _kept(linked, call, holder)
            if kept is not None and not _is_broken(linked, call.bound):
                place = module.location_in(kept[0], kept[1].at)
                yield self.hit(
                    call.at,
                    f"`{call.bound}` holds `{holder}`, which holds it",
                    confidence="medium"
                    if _is_given_out(facts, call, holder)
                    else _confidence(linked, call.function, known=holder == "self"),
                    evidence=(Evidence(place, "kept", f"self.{kept[1].name}"),) if place else (),
                )
        for use in facts.uses:
            held = _is_told_of_self(use) and _is_held(facts, use)
            if (
                held
                and _is_worth_it(linked, use.function)
                and not _is_broken(linked, f"{use.holder}.{use.name}")
            ):
                known = _is_bound_here(linked, use.holder)
                yield self.hit(
                    use.at,
                    f"`{use.holder}` holds self, which holds it",
                    confidence=_confidence(linked, use.function, known=known),
                )


def _confidence(linked: Linked, function: int, *, known: bool) -> Confidence:
    """Of one that is handed in nobody knows what it is, nor of most how often they are made."""
    owner = _owner(linked, function)
    return "medium" if known and owner is not None and is_made_again(owner) else "low"


def _is_given_out(facts: FileFacts, call: Call, holder: str) -> bool:
    """Whether each call of the method gets the holder from another, and returns it in the end."""
    function = facts.function(call.function)
    made = [b.value.kind for b in facts.bindings if (b.name, b.function) == (holder, call.function)]
    fresh = bool(made) and all(kind == "call" for kind in made)
    if function is None or not fresh or sets_up(facts, call.function):
        return False
    return any(each.kind == "name" and each.text == holder for each in function.returns)


def _is_worth_it(linked: Linked, function: int) -> bool:
    """Whether the object around holds tensors; of one that is handed in nobody knows."""
    owner = _owner(linked, function)
    return owner is not None and holds_tensors(owner)


def _owner(linked: Linked, function: int) -> Member | None:
    owner = linked.facts.class_around(function)
    return Member(linked, owner) if owner is not None else None


def _comes_and_goes(facts: FileFacts, call: Call, holder: str) -> bool:
    """Whether the holder is self, a parameter or local to the function: a global outlives it."""
    function = facts.function(call.function)
    root = holder.partition(".")[0]
    if root in ("", "cls") or function is None or root in function.shared:
        return False  # a class is part of cycles anyway
    return root in function.parameters or any(
        bound.name == root and bound.function == call.function for bound in facts.bindings
    )


def _kept(linked: Linked, call: Call, holder: str) -> tuple[FileFacts, AttributeEffect] | None:
    """Return where the class that is called stores, as it is, the argument that holds it."""
    made = linked.class_called(call.qualified or call.spelled)
    for member in made.file.lineage(made) if made is not None else ():
        if (index := member.facts.methods.get("__init__")) is not None:
            facts = member.file.facts
            given = call.given(holder, facts.functions[index].parameters[1:])
            stores = (
                (facts, use)
                for use in member.binds()
                if use.function == index and use.value is not None and use.value.text == given
            )
            return next(stores, None) if given else None
    return None


def _is_broken(linked: Linked, spelled: str) -> bool:
    """Whether somebody lets go of the part, and so of the cycle."""
    name = spelled.rpartition(".")[2]
    if any(
        call.argument("value", 1) == Expr("constant", repr(name)) for _, call in _deletions(linked)
    ):
        return True
    return any(
        use.role == "take" or (use.value is not None and use.value.text == "None")
        for facts, use in linked.uses(name)
        if not sets_up(facts, use.function)
    )


def _deletions(linked: Linked) -> Iterator[tuple[FileFacts, Call]]:
    for function in ("delattr", "setattr"):
        yield from linked.calls_of(function)


def _is_told_of_self(use: AttributeEffect) -> bool:
    return use.role == "bind" and use.value is not None and use.value.text == "self"


def _is_bound_here(linked: Linked, holder: str) -> bool:
    """Whether the project itself hangs it on self; what a framework does may hold self already."""
    _, on_self, name = holder.partition("self.")
    return not on_self or any(use.role == "bind" for _, use in linked.uses(name))


def _is_held(facts: FileFacts, use: AttributeEffect) -> bool:
    """`self.bar.owner = self`, or `item.owner = self` beside `self.items.append(item)`."""
    if use.holder.startswith("self."):
        return not sets_up(facts, use.function) or use.holder.count(".") == 1
    return any(
        other.role in ("add", "slot") and other.holder == "self" and other.function == use.function
        for other in facts.uses
        if other.value is not None and other.value.text == use.holder
    )
