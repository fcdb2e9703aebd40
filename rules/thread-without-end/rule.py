"""while True with no way out, in a thread or a task that an object starts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from leakcheck.source.words import Pattern
from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import Call, Expr, FileFacts, FunctionFacts
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api

_TASKS = ("create_task", "ensure_future")
_THREADS = frozenset(["threading.Thread", *api("processes")])


class ThreadWithoutEnd(Rule):
    """Threads and tasks of an object whose loop nothing can end, close() included."""

    code = "LK608"
    summary = "an object starts a thread whose loop has no way out"
    help = "leave the loop on a stop event or a None in the queue, and join in close()"
    proof = (
        "static only: a run tells the threads, held by `threading`, not the line that starts them"
    )
    words = ("Thread", "Process", "create_task", "ensure_future")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each thread or task that a method starts, and each thread of a generator."""
        linked = module.facts
        for call in linked.facts.calls:
            method = linked.facts.method_around(call.function)
            if method is None or not (method.owner or method.yields):
                continue
            if _ends_with_its_loop(linked.facts, call) or _is_killed(linked, call):
                continue
            loop = _loop(linked, call, method)
            if loop is None:
                continue
            if loop.endless and (_can_be_closed(linked, method) or _is_first(call, method)):
                told = f"`{loop.name}` has no way out, so closing its owner does not end it"
                yield self.hit(call.at, told, confidence="medium")
            elif _blocks(linked.facts, loop) and not _is_drained(linked.facts, method):
                told = f"`{loop.name}` waits for room in a full queue once nobody reads from it"
                yield self.hit(call.at, told, confidence="medium")


def _can_be_closed(linked: Linked, method: FunctionFacts) -> bool:
    """Whether the class that starts the thread says when it is over."""
    owner = linked.class_called(method.owner)
    members = linked.lineage(owner) if owner is not None else []
    return any(name in api("teardowns") for each in members for name in each.facts.methods)


def _is_killed(linked: Linked, call: Call) -> bool:
    """Whether somebody ends the process that an attribute is bound to, whatever it does."""
    kept = call.bound.startswith("self.")
    uses = linked.uses(call.bound.removeprefix("self.")) if kept else ()
    return any(use.how in ("terminate", "kill") for _, use in uses)


def _loop(linked: Linked, call: Call, method: FunctionFacts) -> FunctionFacts | None:
    """The function that the thread runs: its target, or the run method of its class."""
    target = _coroutine(linked, call) or call.argument("target", 1)
    if (
        (call.qualified in _THREADS or call.method in _TASKS)
        and target is not None
        and target.kind == "name"
    ):
        word = target.text.rpartition(".")[2]
        owner = linked.facts.class_named(method.owner)
        index = owner.methods.get(word) if owner and target.text == f"self.{word}" else None
        nested = [f for f in linked.facts.functions if f.name == word and f.around >= 0]
        nested.sort(key=lambda f: f.around != call.function)
        return linked.facts.functions[index] if index is not None else next(iter(nested), None)
    member = linked.class_called(call.qualified or call.spelled)
    return _run(member) if member is not None and method.owner != member.facts.name else None


def _coroutine(linked: Linked, call: Call) -> Expr | None:
    """The method that a task runs, `create_task(self._run())`, unless somebody can cancel it."""
    run = call.argument("coro", 0) if call.method in _TASKS else None
    if run is None or run.kind != "call" or call.fate not in ("bound", "dropped"):
        return None
    uses = linked.uses(call.bound.removeprefix("self.")) if call.bound else ()
    kept = call.fate == "dropped" or call.bound.startswith("self.")
    ended = any(use.role == "escape" or use.how in ("cancel", "bound") for _, use in uses)
    return replace(run, kind="name") if kept and not ended else None


def _is_first(call: Call, method: FunctionFacts) -> bool:
    """Whether a task begins with its object, which can then not be without it."""
    return call.method in _TASKS and method.name == "__init__"


def _blocks(facts: FileFacts, loop: FunctionFacts) -> bool:
    """Whether it fills a queue of limited size, and asks neither for time nor for a way to stop."""
    index = facts.functions.index(loop) if loop in facts.functions else -1
    calls = facts.calls_in(index) if index >= 0 else ()
    puts = [call for call in calls if call.method == "put" and call.receiver and call.loops]
    limited = any(_is_limited(facts, put) for put in puts)
    patient = all(len(call.arguments) == 1 for call in puts)
    asked = [call.spelled for call in calls]
    asked += [use.name for use in facts.uses if use.function == index]
    stopped = any(map(_STOPS.search, asked)) or _asks_a_flag(facts, index)
    return bool(puts) and limited and patient and not stopped


def _is_limited(facts: FileFacts, put: Call) -> bool:
    """Whether the queue is told how many it may hold; of one that is handed on, whether any is."""
    queues = facts.calls_by_name.get("Queue", ())
    name = put.receiver.text if put.receiver is not None else ""
    sizes = [q.argument("maxsize", 0) for q in [q for q in queues if q.bound == name] or queues]
    return any(size is not None and size.text not in ("0", "-1", "None") for size in sizes)


def _asks_a_flag(facts: FileFacts, index: int) -> bool:
    """Whether a method asks something of self that a closing one sets to a constant."""
    own = facts.functions[index].owner if index >= 0 else ""
    asked = {use.name for use in facts.uses if use.function == index and use.role == "read"}
    return any(
        use.role == "bind" and use.value is not None and use.value.kind == "constant"
        for name in asked
        for use in facts.uses_by_name.get(name, ())
        if use.function >= 0 and facts.functions[use.function].owner == own
        if facts.functions[use.function].name in api("teardowns")
    )


def _ends_with_its_loop(facts: FileFacts, call: Call) -> bool:
    """Whether the coroutine that begins a task is all that an event loop is run for.

    `loop.run_until_complete(_run())`: once it returns, nothing runs the tasks that are left.
    """
    function = facts.function(call.function) if call.method in _TASKS else None
    if function is None or function.around < 0 or function.endless:
        return False
    return any(
        given.value.kind == "call" and given.value.text.rpartition(".")[2] == function.name
        for run in facts.calls_in(function.around)
        if run.method == "run_until_complete" or run.qualified == "asyncio.run"
        for given in run.arguments
    )


def _is_drained(facts: FileFacts, method: FunctionFacts) -> bool:
    """Whether a method of its owner takes what is left in a queue and waits for the thread."""
    owner = facts.class_named(method.owner)
    own = set(owner.methods.values()) if owner is not None else set()
    joins = {c.function for c in facts.calls_by_name.get("join", ()) if c.function in own}
    takes = (c for name in ("get", "get_nowait") for c in facts.calls_by_name.get(name, ()))
    return any(call.loops and call.function in joins for call in takes)


_STOPS = Pattern(r"<asks_to_stop>")


def _run(member: Member) -> FunctionFacts | None:
    threads = any(base in _THREADS for base in member.file.foreign_bases(member))
    index = member.facts.methods.get("run")
    return member.file.facts.functions[index] if threads and index is not None else None
