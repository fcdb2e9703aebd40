"""The one table of edits that may end a leak: each row makes the texts that are worth a trial.

A row proposes and never promises: what an edit does, only a run of the program shows. Where the
owner alone can choose (a size), a row has a choice to make, and is tried when it has been made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from leakcheck.cure import ended, graphs, hooks, limited, unkept
from leakcheck.cure.sites import LeakSite
from leakcheck.model import Kind
from leakcheck.static.cuts import TITLES

_GRAPH: tuple[Kind, ...] = ("graph",)
_MEMORY: tuple[Kind, ...] = ("tensor", "object", "device", "native")
_ANY: tuple[Kind, ...] = (*_GRAPH, *_MEMORY)
_OPENED: tuple[Kind, ...] = (*_MEMORY, "threads", "descriptors", "processes", "shared-memory")
Make = Callable[[LeakSite, str], Iterator[str]]
# what another statement may miss; "again": that a graph can be gone through once more; "all": what
# only an edit takes that rests on nothing reading it
Lost = Literal["", "graph", "again", "number", "value", "all"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kind of edit: its name, what it does, the leaks it may end, and how it is made."""

    name: str
    title: str
    kinds: tuple[Kind, ...]
    make: Make
    choice: str = ""  # what the owner has to choose before a trial, e.g. a size
    policy: str = ""  # what a trial decides for the owner
    loses: Lost = ""
    to_end: bool = False  # what is kept for later is seen only where the program comes to its end
    on_device: bool = False  # of use only where a device's memory grows; no size answers it


def proposals(site: LeakSite, size: int | None = None) -> Iterator[tuple[int, Candidate, str]]:
    """Yield the edited texts worth a trial at a site, each with its rank, in the table's order.

    `size` is the owner's choice; without one, it is written as `...` in what needs it. Where it
    was made, the edits that ask for it come first.
    """
    chosen = "..." if size is None else str(size)
    before = site.source.module.code
    rows = TABLE if size is None else sorted(TABLE, key=lambda each: not each.choice)
    for rank, candidate in enumerate(rows):
        if site.suspect.kind in candidate.kinds:
            for text in candidate.make(site, chosen):
                if text != before and _parses(text):
                    yield rank, candidate, text


def _parses(text: str) -> bool:
    try:
        compile(text, "edited", "exec", dont_inherit=True)  # `ast.parse` takes a late __future__
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


TABLE = (
    Candidate("item", TITLES["item"], _GRAPH, graphs.as_number, loses="number"),
    Candidate("detach", TITLES["detach"], _ANY, graphs.detached, loses="graph"),
    Candidate("float", "keep the number: float()", _ANY, graphs.as_float, loses="number"),
    Candidate(
        "carried",
        "detach what is carried over as a step begins",
        _GRAPH,
        graphs.carried_cut,
        loses="graph",
    ),
    Candidate(
        "no-grad",
        "make no graph there: torch.no_grad()",
        _GRAPH,
        graphs.without_grad,
        loses="graph",
    ),
    Candidate(
        "no-grad-function",
        "make no graph in the function: @torch.no_grad()",
        _GRAPH,
        graphs.function_without_grad,
        loses="graph",
    ),
    Candidate("graph", TITLES["graph"], _ANY, graphs.graph_let_go, loses="again"),
    Candidate("gradients", "drop the gradients as the step ends", _GRAPH, graphs.gradients_dropped),
    Candidate("weak-hook", "let the hook refer to its object weakly", _GRAPH, hooks.hooked_weakly),
    Candidate(
        "weak-exit",
        "call it at the exit only if its object is still there",
        _ANY,
        hooks.called_weakly_at_exit,
        policy="whether an object that is gone needs its call at the exit",
    ),
    Candidate("handle", "remove the hook as the step ends", _ANY, hooks.handle_removed),
    Candidate("once", "register the hook once, before the loop", _ANY, hooks.registered_once),
    Candidate(
        "clear",
        "empty it as each epoch ends",
        _ANY,
        limited.cleared_each_epoch,
        policy="when it may be emptied",
        loses="value",
    ),
    Candidate("text", "keep the words of the exception", _ANY, unkept.as_text, loses="value"),
    Candidate("copy", "keep a copy of the part", _MEMORY, unkept.copied),
    Candidate("close", "end it where it is made", _OPENED, ended.closed),
    Candidate(
        "made-once", "make it once, before the loop", _OPENED, ended.made_once, loses="value"
    ),
    Candidate(
        "drop", "do not keep it: nothing reads it", _ANY, unkept.dropped, loses="all", to_end=True
    ),
    Candidate("weak", "keep a weak reference", _ANY, unkept.weakly, loses="value"),
    Candidate(
        "weak-keys", "keep it while its key is in use", _ANY, unkept.keyed_weakly, loses="value"
    ),
    Candidate("unlinked", "do not keep the one before it", _ANY, unkept.unlinked, loses="value"),
    Candidate(
        "rewind",
        "begin the file in memory anew",
        _MEMORY,
        unkept.rewound,
        policy="when what was written may go",
        loses="value",
    ),
    Candidate(
        "coalesce", "add up what a sparse tensor has of one place", _MEMORY, unkept.coalesced
    ),
    Candidate(
        "place",
        "keep its place alone: nothing reads it",
        _ANY,
        unkept.emptied,
        loses="all",
        to_end=True,
    ),
    Candidate(
        "deque",
        "keep the last ones only",
        _ANY,
        limited.as_deque,
        "how many to keep",
        loses="value",
    ),
    Candidate(
        "window", "drop the oldest ones", _ANY, limited.windowed, "how many to keep", loses="value"
    ),
    Candidate(
        "slice",
        "keep the last rows only",
        _ANY,
        limited.sliced,
        "how many rows to keep",
        loses="value",
    ),
    Candidate(
        "trim", "drop the oldest entry", _ANY, limited.trimmed, "how many to keep", loses="value"
    ),
    Candidate("memo", "limit the cache", _ANY, limited.memo_limited, "how many results to keep"),
    Candidate(
        "host",
        "keep it in the host's memory, where it grows as fast",
        _ANY,
        unkept.on_host,
        "whether the host has room for all of it",
        on_device=True,
    ),
)
