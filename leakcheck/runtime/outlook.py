"""Will what grows stop? One table from a case to its outlook: the first row that fits decides.

Pure, and asked about each thing that grows: what was measured comes first, what live objects say
next, and the source last, which never acquits: it says for how long to wait, and for what. Waits
are counted in steps and turns, so that a slow machine gets the same verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from leakcheck.model import Field, Reason
from leakcheck.source.guards import MOST_HELD
from leakcheck.source.uses import RELIEVES, Use

OutlookKind = Literal["leak", "fills", "emptied", "memo"]
Then = Literal["growing", "steady", "unclear", "look again"]

# what is cut back now and then may hold somewhat more than its limit; a quarter more it does not
PASSED = 1.25
FEWEST_RUNS = 2  # of what takes away, after which growth that goes on is not held by it
FILLS_WITHIN = 1.5  # times the steps that it seemed to need, as steps add by turns
LIMIT_STEPS = 1000  # for a limit that cannot be read, at first; then twice as long
GRAPH_LIMIT_STEPS = 200  # of graphs: what is cut back later than that is a leak until then
LOOP_STEPS = 1000  # for the loop around the steps to turn, though nothing says what that lets go
ELSEWHERE_STEPS = 5000  # for what some line may take away, or what is full after a turn
TURN_STEPS = 50_000  # for a loop to turn that takes it away: an epoch may take hours
MEMO_STEPS = 700  # for what is only kept where it is new, until every key was seen
UNSURE_STEPS = 200  # for what nothing known holds
SHAPES_STEPS = 1100  # for a library's cache by shape to be full: oneDNN keeps 1,024 primitives
Says = tuple[OutlookKind, int | None, Then]
Numbers = tuple[tuple[str, int | float | None], ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is to come of growth, for how many steps to wait for it, and what it is if it grows on.

    `wait_steps`: at most, None for as long as the run takes. For what may be emptied
    `stages.growth` waits, for what fills up `judgement.harmless`, and `judgement.confirmation` for
    what slows down.
    """

    kind: OutlookKind
    reason: Reason
    wait_steps: int | None = 0
    then: Then = "growing"


@dataclass(frozen=True, slots=True)
class Beyond:
    """What memory has no room for: how many elements, what they weigh, and the room.

    A limit, or what a loop will have gathered at its end.
    """

    most: int
    full_bytes: float
    room_bytes: int


@dataclass(frozen=True, slots=True)
class Case:
    """What is known about one thing that grows: its uses by the source, all else by measuring."""

    uses: tuple[Use, ...] = ()
    length: int | None = None  # of that very container
    rises: bool = False  # its length, as far as it was measured
    graph: bool = False
    alone: bool = False  # one tensor keeps the graph it was made by, in no container
    awaited: bool = False  # a backward that has not run yet takes the graph
    per_request: bool = False  # the steps are requests, each of which takes away its own entry
    due: bool = False  # an event loop lets go of it in time
    published: bool = False  # a known leak of an installed version of a library
    trains: bool = True  # an optimizer steps: to gather is not all that the loop is for
    beyond: Beyond | None = None  # what it never comes to: memory has no room

    @property
    def relief(self) -> tuple[Use, ...]:
        """The uses that may yet take something away."""
        known = (use for use in self.uses if not self.is_own(use))
        return tuple(use for use in known if may_relieve(use) and not self.is_vain(use))

    @property
    def adds(self) -> tuple[Use, ...]:
        """The uses that add and can run."""
        return tuple(u for u in self.uses if u.role == "add" and u.reach != "never called")

    @property
    def limits(self) -> tuple[Use, ...]:
        """The uses that keep it to a number: a ring, all additions below n, cuts above n."""
        adds = self.adds
        below = adds if adds and all(_is_below(use) for use in adds) else ()
        cuts = (use for use in self.relief if use.role in ("ring", "take", "cut", "replace"))
        above = (u for u in cuts if u.role == "ring" or (u.guard.kind == "above" and self._may(u)))
        return (*below, *above)

    def _may(self, cut: Use) -> bool:
        """Say whether a cut above n may be what holds: not one elsewhere that asks for more."""
        return cut.guard.only or cut.reach == "each step" or not self._passed(cut)

    def _passed(self, use: Use) -> bool:
        return self.length is not None and self.length > PASSED * (use.guard.n or self.length)

    @property
    def most(self) -> int | None:
        """The least number that it is kept to, by what the source states."""
        known = [use.guard.n for use in self.limits if use.guard.n is not None]
        return min(known, default=None)

    @property
    def firm(self) -> int | None:
        """The least number that it is kept to at each step, whatever else is asked.

        None where another limit is not known: it may be the one that holds.
        """
        if any(use.guard.n is None for use in self.limits):
            return None
        each = (u for u in self.limits if u.guard.only and u.reach == "each step")
        known = [use.guard.n for use in each if use.guard.n is not None and use.role != "ring"]
        return min(known, default=None)

    def is_own(self, use: Use) -> bool:
        """Say whether a use takes away what its own request added: nothing that others left."""
        return self.per_request and use.role == "take" and use.by_key

    def is_vain(self, use: Use) -> bool:
        """Say whether a use took something away again and again, while it went on growing.

        Not behind a condition that the object is asked, `if len(self.rows) > self.most`, where it
        took nothing from this one: then it ran for another object of the class.
        """
        again = use.role in RELIEVES and use.sure and use.ran >= FEWEST_RUNS
        return self._is_ring_beside(use) or (again and not self._ran_for_another(use))

    def _is_ring_beside(self, use: Use) -> bool:
        """Say whether it is longer than the ring that runs now and then, and goes on beside it.

        `if len(kept) < n or random() > 0.5: kept.append(x)`, and else `kept[i] = x`.
        """
        stated = use.guard.kind in ("below", "above")
        full = use.role == "ring" and stated and self._passed(use)
        held = bool(self.adds) and all(map(_is_below, self.adds))
        return full and not held and use.ran >= FEWEST_RUNS

    def _ran_for_another(self, use: Use) -> bool:
        """Say whether a condition on the object let it run, and this one has not come to that."""
        most, length = use.guard.n, self.length
        if use.guard.kind == "above" and most is not None and length is not None:
            return length <= most
        return (use.guard.of_self and not use.took) and use.ran < use.asked


def may_relieve(use: Use) -> bool:
    """Say whether a use may yet take something away from what grows."""
    if use.role not in RELIEVES or use.barred:
        return False
    made = use.guard.kind == "new" and use.role == "replace"
    if made or use.guard.kind == "missing" or (use.guard.n or 0) > MOST_HELD:
        return False
    if use.guard.kind == "every" and use.guard.n == 0:
        return False  # `if every and step % every == 0`: nothing is divided by 0
    rare = use.reach in ("once", "never called", "only in an except handler")
    return not rare or (use.ran > 0 and use.reach != "once")


def outlook_of(case: Case) -> Outlook:
    """Return what the first row of the table that fits says."""
    return next(row.outlook(case) for row in TABLE if row.fits(case))


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """One row: its code, when it fits, and what it says then, about which use and numbers."""

    code: str
    fits: Callable[[Case], bool]
    says: Callable[[Case], Says]
    tells: Callable[[Case], Use | None] = lambda case: None
    numbers: Callable[[Case], Numbers] = lambda e: (("most", e.most), ("length", e.length))

    def outlook(self, case: Case) -> Outlook:
        """Return the outlook, with the use that it rests on."""
        kind, wait_steps, then = self.says(case)
        known = [(name, each) for name, each in self.numbers(case) if each is not None]
        use = self.tells(case)
        where = () if use is None else _fields(use)
        return Outlook(kind, Reason(self.code, (*known, *where)), wait_steps, then)


def _fields(use: Use) -> tuple[tuple[str, Field], ...]:
    code = use.guard.test if use.guard.test and use.guard.kind in ("below", "above") else use.code
    line = use.guard.line if code == use.guard.test else use.line
    path = use.guard.path if code == use.guard.test else use.path
    return ("path", path), ("line", line), ("code", code)


def _is_below(use: Use) -> bool:
    return use.guard.kind == "below" and (use.guard.n or 0) <= MOST_HELD


def _is_lasting_graph(case: Case) -> bool:
    """Say whether a graph stays: no known use at each step releases it.

    What one tensor is cut to keeps it by its history all the same, unless that is detached.
    """
    known = (use for use in case.relief if use.role != "escape")
    beside = (use for use in known if use.reach == "each step")
    cut = any(use.detached for use in case.limits)
    lets_go = any((*case.limits, *beside)) and (cut or not case.alone)
    return case.graph and not (case.awaited or lets_go)


def _hoped(case: Case, wait_steps: int, then: Then) -> Says:
    """Return what is emptied, some day: of a graph that nobody means to keep, soon."""
    if not case.graph or case.awaited:
        return "emptied", wait_steps, then
    return "emptied", min(wait_steps, GRAPH_LIMIT_STEPS), "growing"


def _vain(case: Case) -> Use | None:
    taken = (use for use in case.uses if use.reach != "once")  # a new object's own
    return next((use for use in taken if case.is_vain(use) and not case.is_own(use)), None)


def _is_in_vain(case: Case) -> bool:
    return _vain(case) is not None and not case.relief


def _own(case: Case) -> Use | None:
    return next(filter(case.is_own, case.uses), None)


def _is_left_by_some(case: Case) -> bool:
    return _own(case) is not None and not case.relief


def _is_over(case: Case) -> bool:
    most = case.firm
    return most is not None and (case.length or 0) > PASSED * most


def _is_below_its_limit(case: Case) -> bool:
    """Say whether a limit is known that it may yet come to; one cut to now and then is passed."""
    most = case.most
    return most is not None and (case.length or 0) < most


def _turning(case: Case) -> Use | None:
    return next((use for use in case.relief if use.reach == "when a loop turns"), None)


def _recurring(case: Case) -> Use | None:
    steps = (use for use in case.relief if use.reach == "each step")
    return next((use for use in steps if use.guard.kind == "every"), None)


def _steps_to_the_next(case: Case) -> int:
    use = _recurring(case)
    every = use.guard.n if use is not None else None
    return TURN_STEPS if every is None else max(LOOP_STEPS, round(FILLS_WITHIN * every))


def _took_nothing(case: Case) -> bool:
    """Say whether what may take away runs at each step, and it grew all the same.

    `jobs.pop(step - 100, None)` takes nothing at first; a key that is never there, never.
    """
    added = max((use.ran for use in case.adds), default=0)
    as_often = added > 0 and all(use.ran >= added and not use.sure for use in case.relief)
    takes = all(use.role == "take" and use.reach == "each step" for use in case.relief)
    return bool(case.relief) and as_often and takes and case.rises


def _relieving(case: Case) -> Use | None:
    return next(iter(case.relief), None)


def _limiting(case: Case) -> Use | None:
    told = [use for use in case.limits if use.guard.n == case.most]
    return next(iter((*told, *case.limits)), None)


def _gathering(case: Case) -> Use | None:
    """Return what uses all of it after the loop: of a training only what joins or saves it."""
    used = (use for use in case.uses if use.gathers or (use.after and not case.trains))
    return next(used, None)


def _is_published(case: Case) -> bool:
    ran = any(use.ran or use.asked for use in case.relief)
    return case.published and not ran


def _first_add(case: Case) -> Use | None:
    return next(iter(case.adds), None)


def _is_memo(case: Case) -> bool:
    adds = case.adds
    return bool(adds) and all(use.guard.ceases for use in adds)


def _steps_to_be_full(case: Case) -> int:
    most, length = case.most or 0, case.length or 0
    return max(1, round(max(FILLS_WITHIN * (most - length), PASSED * most - length)))


def _always(kind: OutlookKind, wait_steps: int | None, then: Then) -> Callable[[Case], Says]:
    return lambda case: (kind, wait_steps, then)


def _of_memory(case: Case) -> Numbers:
    beyond = case.beyond
    if beyond is None:
        return ()
    return (
        ("most", beyond.most),
        ("full_bytes", beyond.full_bytes),
        ("room_bytes", beyond.room_bytes),
    )


_LEAK = _always("leak", 0, "growing")
TABLE = (
    OutlookRow("due-in-time", lambda e: e.due, _always("emptied", None, "unclear")),
    OutlookRow("lasting-graph", _is_lasting_graph, _LEAK),
    OutlookRow(
        "over-its-limit",
        _is_over,
        _LEAK,
        _limiting,
        lambda e: (("most", e.firm), ("length", e.length)),
    ),
    OutlookRow("taken-in-vain", _is_in_vain, _LEAK, _vain),
    OutlookRow("left-by-some-requests", _is_left_by_some, _LEAK, _own),
    OutlookRow("published", _is_published, _LEAK, _first_add),
    OutlookRow(
        "fills-to-a-number",
        _is_below_its_limit,
        lambda e: ("fills", _steps_to_be_full(e), "growing"),
        _limiting,
    ),
    OutlookRow(
        "fills-to-a-limit",
        lambda e: bool(e.limits),
        lambda e: ("fills", GRAPH_LIMIT_STEPS if e.graph else LIMIT_STEPS, "look again"),
        _limiting,
    ),
    OutlookRow(
        "gathers-too-much",
        lambda e: _gathering(e) is not None and e.beyond is not None and not e.relief,
        _LEAK,
        _gathering,
        _of_memory,
    ),
    OutlookRow(
        "gathered",
        lambda e: _gathering(e) is not None,
        _always("emptied", None, "steady"),
        _gathering,
    ),
    OutlookRow(
        "emptied-now-and-then",
        lambda e: _recurring(e) is not None,
        lambda e: _hoped(e, _steps_to_the_next(e), "look again"),
        _recurring,
    ),
    OutlookRow(
        "emptied-at-a-turn",
        lambda e: _turning(e) is not None,
        lambda e: _hoped(e, TURN_STEPS, "growing"),
        _turning,
    ),
    OutlookRow(
        "took-nothing-yet",
        _took_nothing,
        lambda e: _hoped(e, LIMIT_STEPS, "growing"),
        _relieving,
    ),
    OutlookRow(
        "emptied-elsewhere",
        lambda e: bool(e.relief),
        lambda e: _hoped(e, ELSEWHERE_STEPS, "growing"),
        _relieving,
    ),
    OutlookRow("memo", _is_memo, _always("memo", MEMO_STEPS, "growing"), _first_add),
    OutlookRow("does-not-fit", lambda e: e.beyond is not None, _LEAK, _first_add, _of_memory),
    OutlookRow("grows", lambda e: True, _LEAK, _first_add),
)
