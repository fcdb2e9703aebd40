"""What should be gone and is not, in words: what it is, what keeps it, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakcheck.model import Holder, Retained
from leakcheck.report.plain import one_line
from leakcheck.report.terminal import link_text

MOST_TOLD = 5
_OF_ATTRIBUTE = "set `{name}` to None when it is done with, or keep a weak reference there"
_FIXES = {
    "local": "`del {name}` before the end of the block, or end the function that names it",
    "suspended": "end the generator or coroutine (`close()`, `cancel()`), or let go of it",
    "exception": "let go of the exception: no `error` kept outside its `except`, no frames "
    "(`traceback.clear_frames(error.__traceback__)`)",
    "memo": "`cache_clear()`, or no `lru_cache` over a method: it keeps every `self`",
    "hook": "keep what `register_..._hook` returns and call its `remove()`",
    "closure": "let go of the function that closes over it, or hand it a weak reference",
    "global": "remove it there when it is done with, or keep a weak reference",
    "class attribute": "keep it on the instance: what is on the class outlives each of them",
    "context variable": "reset the variable with the token that `set` returned",
    "memory": "let go of it, or `clone()` what is to outlive the tensor: a view, `detach()` and "
    "`numpy()` share its memory",
    "saved tensor": "`detach()` what is kept of the graph, or let go of it: its Nodes keep what "
    "they saved for backward",
    "graph hook": "remove the hook with the handle that `register_hook` returned, or hand it a "
    "weak reference: the collector does not see through C++",
    "cycle": "break the cycle, by a weak reference or by hand; else it waits for gc.collect()",
    "outside": "look for what keeps it in C or C++: a queue, an extension, a thread",
}


def render(retained: Sequence[Retained], alive: int) -> str:
    """Write what is alive, the first of them with what keeps it; ends without a newline."""
    lines = [
        "1 object that should be gone is alive"
        if alive == 1
        else f"{alive} objects that should be gone are alive"
    ]
    for each in retained[:MOST_TOLD]:
        lines += ["", *_told(each)]
    more = len(retained) - MOST_TOLD
    lines += ["", f"and {more} more, kept in other ways"] if more > 0 else []
    return "\n".join(map(one_line, lines))


def _told(one: Retained) -> Iterator[str]:
    also = f" and {one.also} more the same way" if one.also else ""
    yield f"{one.what}{also}, kept by {_keeper(one)}"
    yield f"  {one.trace.root}"
    last = len(one.trace.links) - 1
    for depth, link in enumerate(one.trace.links):
        yield f"  {'╰→' if depth == last else '├─'} {link_text(link)}"
    if one.threads:
        called = ", ".join(f"{name}()" for name in one.threads)
        yield f"  other threads are in {called}: what they name cannot be seen from here"
    yield f"  fix: {_fix(one)}"


def _fix(one: Retained) -> str:
    """Say what to do; of the attribute that the object is, not of the name that leads there."""
    held = one.holder
    edges = [link.edge for link in one.trace.links[-1:]]
    if one.by in ("local", "global") and edges == [f".{held.name}"]:
        return _OF_ATTRIBUTE.format(name=held.qualified)
    return _FIXES[one.by].format(name=_name(one))


def _keeper(one: Retained) -> str:
    if one.by == "cycle":
        return "a reference cycle that nothing else refers to"
    if one.by == "graph hook":
        return f"the hook {one.holder.name}" + (f", on {one.node}" if one.node else "")
    if one.by == "memory":
        return f"{one.holder or 'something'}: a {one.node} shares its memory"
    if one.by == "outside":
        return "something outside Python"
    named = str(one.holder) or "something outside Python"
    return f"{one.node}, which {named} reaches" if one.by == "saved tensor" else named


def _name(one: Retained) -> str:
    start: Holder = one.holder.start
    return start.name or "it"
