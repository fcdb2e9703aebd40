"""What is to come of all that a window found: the table is asked of each, and then of them all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from leakcheck.known import leak_of
from leakcheck.model import Field, Holder, Notice, Place, Reason, Suspect
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.runtime.attribution.window import Findings
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.runtime.judgement.harmless import gained_bytes
from leakcheck.runtime.judgement.judge import Reading
from leakcheck.runtime.judgement.release import Removal
from leakcheck.runtime.outlook import Case, Outlook, outlook_of
from leakcheck.runtime.readings.meters import is_in_use
from leakcheck.source.backwards import backward_at
from leakcheck.source.guards import NONE
from leakcheck.source.uses import RELIEVES, Use

MOSTLY_FOUND = 4  # times as often asked as it gains: what is asked for is there already
FEWEST_ASKED = 16
_TOO_LARGE = {"does-not-fit": "too-large", "gathers-too-much": "too-much"}  # outlook -> notice
MOST_UNTOLD = 2.0  # times what is known of it, that memory may gain with what is gathered
AROUND_OBJECT_BYTES = 1 << 10  # a tensor of one number takes some 700 with what is around it


@dataclass(frozen=True, slots=True)
class Prospect:
    """One suspect, its case, and what the table says of it."""

    suspect: Suspect
    case: Case
    outlook: Outlook

    @property
    def fills(self) -> bool:
        """Whether it only fills up."""
        return self.outlook.kind == "fills"

    @property
    def is_bounded(self) -> bool:
        """Whether it ends by itself: it only fills up, or is a graph that goes every so often."""
        graph = self.case.graph and not self.case.awaited
        return self.fills or (graph and self.outlook.reason.code == "emptied-now-and-then")

    @property
    def in_vain(self) -> bool:
        """Whether something took away again and again, while it grew all the same."""
        return self.outlook.reason.code == "taken-in-vain"

    def noted(self, code: str, **fields: Field) -> Notice:
        """Return a note about what holds it."""
        return Notice("note", Reason.of(code, holder=str(self.suspect.holder), **fields))

    @property
    def limit(self) -> Use | None:
        """The use that limits it."""
        known = self.case.limits or (() if self.fills else self.case.relief)
        told = [use for use in known if use.guard.n == self.case.most]
        return next(iter((*told, *known)), None)


@dataclass(frozen=True, slots=True)
class Prospects:
    """What is to come of the suspects of a window."""

    each: tuple[Prospect, ...]

    @property
    def beyond(self) -> Prospects:
        """Those that neither fill up nor are released in time; all of them if there are none."""
        each = (one for one in self.each if not (one.fills or one.case.due))
        return Prospects(tuple(each) or self.each)

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """What grows, with the advice to call the method that would empty it if nothing does."""
        return tuple(one.suspect for one in self.each)

    @property
    def leaks(self) -> bool:
        """Whether one is a leak that more steps change nothing about: nothing takes in vain."""
        return any(one.outlook.kind == "leak" and not one.in_vain for one in self.each)

    def without(self, holders: Collection[Holder]) -> Prospects:
        """Return those that others hold."""
        return Prospects(tuple(one for one in self.each if one.suspect.holder not in holders))

    @property
    def outlook(self) -> Outlook | None:
        """What is to come of all of them: a leak, or else what is to be waited for the longest."""
        leaks = [one.outlook for one in self.each if one.outlook.kind == "leak"]
        order = {"emptied": 2, "memo": 1, "fills": 0}
        others = sorted((one.outlook for one in self.each), key=lambda one: -order.get(one.kind, 0))
        return next(iter((*leaks, *others)), None)

    @property
    def limits(self) -> Reason | None:
        """Say which limits the program sets to everything that grows; None if one has none."""
        if not self.each or not all(one.is_bounded for one in self.each):
            return None
        places = {_place_of(one.limit) for one in self.each if one.limit is not None}
        if not places:
            return None
        named = (one.suspect for one in self.each)
        names = (one.what if one.holder.kind == "outside" else str(one.holder) for one in named)
        limits = (
            Reason.of("limit", path=at.path, line=at.line, code=at.code)
            for at in sorted(places, key=lambda at: (at.path, at.line))
        )
        return Reason.of("limited", names=tuple(names), limits=tuple(limits))

    @property
    def removal(self) -> Removal | None:
        """A statement that may take away from what grows, if each has one.

        Not for a graph, unless a backward is to take it: nobody means to keep that.
        """
        outlook = self.outlook
        if outlook is None or outlook.kind != "emptied":
            return None
        decides = next(one for one in self.each if one.outlook is outlook)
        meant = decides.case.awaited or decides.case.due
        if decides.case.graph and not meant:
            return None
        fields = dict(outlook.reason.fields)
        at = (fields.get("path"), fields.get("line"))
        uses = [
            use for use in decides.case.relief if at in (_at(use), (use.guard.path, use.guard.line))
        ]
        return Removal(outlook.reason, any(use.ran or use.asked for use in uses))

    @property
    def graph_wait_steps(self) -> int:
        """For how many steps it is waited that a line takes a graph which nobody means to keep."""
        known = self.outlook
        emptied = known is not None and known.kind == "emptied" and self.removal is None
        return self.wait_steps if emptied else 0

    @property
    def waits_for_end(self) -> bool:
        """Whether only the end tells: it is gathered, or due in time, however long it grows."""
        known = self.outlook
        return known is not None and known.kind == "emptied" and known.wait_steps is None

    @property
    def too_much(self) -> bool:
        """Whether memory has no room for what a loop will have gathered at its end."""
        return any(one.outlook.reason.code == "gathers-too-much" for one in self.each)

    @property
    def gathered(self) -> Prospects:
        """Those that a loop which ends gathers for what comes after it."""
        later = (one for one in self.each if one.outlook.reason.code == "gathered")
        return Prospects(tuple(later))

    def hoped(self, waited_steps: int) -> Prospects:
        """Return those that may yet come to an end: so many steps are not enough to tell."""
        waits = ((one, one.outlook.wait_steps) for one in self.each if one.outlook.kind != "leak")
        return Prospects(tuple(one for one, most in waits if most is None or waited_steps < most))

    @property
    def told_of_hoped(self) -> tuple[Notice, ...]:
        """Tell what was not waited for, as others are a leak whatever becomes of these."""
        return tuple(one.noted("not-waited-for", why=one.outlook.reason) for one in self.each)

    def explain(self, established: Sequence[Reading]) -> bool:
        """Say whether these account for the memory that grows: beside them something else may."""
        gained = [one.line.per_step for one in established if is_in_use(one.resource)]
        suspects = [one.suspect for one in self.each]
        known_bytes = gained_bytes(suspects)
        objects = sum(one.objects_per_step or 0.0 for one in suspects)
        most_bytes = MOST_UNTOLD * (known_bytes + AROUND_OBJECT_BYTES * objects)
        return all(rate <= most_bytes for rate in gained)

    def told_of_gathered(self, steps: int) -> tuple[Notice, ...]:
        """Tell what so many steps gathered, and where it is used."""
        return tuple(
            Notice(
                "gathered",
                Reason.of(
                    "gathered-by-loop",
                    holder=str(one.suspect.holder),
                    gained_bytes=(one.suspect.bytes_per_step or 0.0) * steps,
                    steps=steps,
                    **dict(one.outlook.reason.fields),
                ),
            )
            for one in self.each
        )

    @property
    def turns(self) -> bool:
        """Whether a turn of the loop around the steps lets go of something that some hold."""
        return any(use.reach == "when a loop turns" for one in self.each for use in one.case.relief)

    @property
    def waits_long(self) -> bool:
        """Whether each is emptied at the end of a loop, however long that takes."""
        codes = {one.outlook.reason.code for one in self.each}
        if any(one.case.graph for one in self.each):
            return False
        return bool(codes) and codes <= {"emptied-at-a-turn", "emptied-now-and-then"}

    @property
    def wait_steps(self) -> int:
        """For how many steps it is waited that what grows is emptied, 0 if nothing may do so."""
        emptied = (one.outlook for one in self.each if one.outlook.kind == "emptied")
        return max((one.wait_steps or 0 for one in emptied), default=0)

    @property
    def took_nothing(self) -> bool:
        """Whether all that is waited for runs at each step, and took nothing so far."""
        codes = {one.outlook.reason.code for one in self.each if one.outlook.kind == "emptied"}
        return codes == {"took-nothing-yet"}

    @property
    def is_unread(self) -> bool:
        """Whether nothing reads it but the loop that adds, and no row hopes: no data for later."""
        uses = [use for one in self.each for use in one.case.uses]
        reads = [use for use in uses if use.role == "read" and not use.ran]
        later = any(use.reach not in ("each step", "never called") for use in reads)
        stays = all(one.outlook.kind in ("leak", "memo") for one in self.each)
        return bool(uses) and stays and not later

    @property
    def in_vain(self) -> tuple[Holder, ...]:
        """Who holds what something took away from again and again, while it grew all the same."""
        return tuple(one.suspect.holder for one in self.each if one.in_vain)

    @property
    def looks_again(self) -> bool:
        """Whether another look must say if what was waited for has come."""
        return self.outlook is not None and self.outlook.then == "look again"

    @property
    def period_steps(self) -> int:
        """Return every how many steps something is taken, 0 if that is not known."""
        uses = (use for one in self.each for use in one.case.relief)
        return max((use.guard.n or 0 for use in uses if use.guard.kind == "every"), default=0)

    @property
    def memo(self) -> bool:
        """Whether something is only kept where it is new, and may so end."""
        return any(one.outlook.reason.code == "memo" for one in self.each)

    def mostly_found(self, steps: int) -> bool:
        """Say whether what grows is asked far more often than it gains: its keys come again."""
        return any(_is_mostly_found(one, steps) for one in self.each)

    @property
    def too_large(self) -> tuple[Notice, ...]:
        """Tell of limits that memory has no room for, and of what loops gather."""
        reasons = ((one.suspect.holder, one.outlook.reason) for one in self.each)
        return tuple(
            Notice("note", Reason.of(told, holder=str(holder), **dict(reason.fields)))
            for holder, reason in reasons
            if (told := _TOO_LARGE.get(reason.code)) is not None
        )

    @property
    def passed(self) -> tuple[Notice, ...]:
        """Tell of limits that what grows has passed."""
        over = (one for one in self.each if one.outlook.reason.code == "over-its-limit")
        reasons = ((one, one.outlook.reason) for one in over)
        return tuple(
            one.noted("passed-its-limit", length=reason.get("length"), most=reason.get("most"))
            for one, reason in reasons
        )


NO_PROSPECTS = Prospects(())
OF_A_PLAIN_LOOP = Case()


def prospects_of(
    suspects: Sequence[Suspect], window: Findings, case: Case = OF_A_PLAIN_LOOP
) -> Prospects:
    """Ask the table about suspects of a window; `case`: what is known of the loop already.

    What something takes from, if in vain, comes after what nothing takes from.
    """
    asked = (_prospect(each, window, case) for each in suspects)
    return Prospects(tuple(sorted(asked, key=lambda one: one.in_vain)))


def _prospect(suspect: Suspect, window: Findings, case: Case) -> Prospect:
    known, found = window.grown.get(suspect.holder), window.uses.get(suspect.holder)
    sources = window.sources
    found = sources.uses_of(suspect) if found is None else found
    graph = suspect.kind == "graph"
    awaited = backward_at(suspect, sources.visits, file_of) if graph else None
    if awaited is not None:
        taken = Use("take", NONE, "elsewhere", awaited.path, awaited.line, awaited.code)
        found = (*found, taken)
    case = replace(
        case,
        uses=found,
        length=known.length if known else None,
        rises=known is not None and known.was_never_emptied,
        graph=graph,
        alone=_keeps_its_history(suspect),
        awaited=awaited is not None,
        due=known is not None and known.due,
        beyond=known.beyond if known is not None else None,
    )
    located = _located(suspect, found, sources)
    case = replace(case, published=leak_of(located) is not None)
    outlook = outlook_of(case)
    advised = _advised(located, found, sources)
    return Prospect(replace(advised, reason=outlook.reason), case, outlook)


def _located(suspect: Suspect, uses: Sequence[Use], sources: Sources) -> Suspect:
    """Return a suspect with the line that adds, if only the one that made what grows was seen.

    A hook of a Node is added by the line that registers it, the value of a context variable by the
    one that sets it: a longer tuple is another one. Of what another thread adds no line is seen: it
    is the only one that adds, by the source.
    """
    if suspect.holder.kind == "graph hook":
        paths = [place.path for place in suspect.locations]
        kinds = [link.holder for link in suspect.links]
        registers = sources.registering(suspect.holder.name, paths, kinds)
        return replace(suspect, locations=(*registers, *suspect.locations))
    if suspect.holder.start.kind == "context variable" and suspect.kind != "graph":
        sets = sources.setting(suspect.holder.start.name)
        return replace(suspect, locations=tuple(dict.fromkeys((*sets, *suspect.locations))))
    ran = any(sources.visits.get((place.path, place.line)) for place in suspect.locations)
    adding = [use for use in uses if use.role == "add" and use.reach != "never called"]
    seen = [use for use in adding if use.ran]
    if not seen and len(set(map(_at, adding))) == 1 and sources.others_run:
        seen = adding
    if ran or not seen:
        return suspect
    most = max(seen, key=lambda use: use.ran)
    others = (one for one in suspect.locations if (one.path, one.line) != _at(most))
    return replace(suspect, locations=(Place(*_at(most), most.code), *others))


def _advised(suspect: Suspect, uses: Sequence[Use], sources: Sources) -> Suspect:
    """Return a suspect with the fix to call what would empty it, if nothing calls that."""
    if suspect.holder.kind != "attribute" or suspect.kind not in ("tensor", "object"):
        return suspect
    never = (use for use in uses if use.reach == "never called" and use.role in RELIEVES)
    methods = filter(None, map(sources.called_from_outside, never))
    fixes = (Reason.of("call-what-empties", method=name) for name in methods)
    return replace(suspect, fix=next(fixes, suspect.fix))


def _keeps_its_history(suspect: Suspect) -> bool:
    """Say whether one tensor keeps the graph it was made by: what is cut off it stays in that."""
    in_container = any(link.edge.startswith("[") for link in suspect.links)
    return suspect.kind == "graph" and suspect.what.startswith("Tensor ") and not in_container


def _is_mostly_found(one: Prospect, steps: int) -> bool:
    gained = (one.suspect.objects_per_step or 0.0) * steps
    asked = max((use.asked for use in one.case.adds if use.guard.kind == "new"), default=0)
    return asked >= FEWEST_ASKED and asked >= MOSTLY_FOUND * gained


def _place_of(limit: Use) -> Place:
    """Return the condition that limits, or the statement where there is none."""
    if limit.guard.test:
        return Place(limit.guard.path, limit.guard.line, limit.guard.test)
    return Place(limit.path, limit.line, limit.code)


def _at(use: Use) -> tuple[str, int]:
    return use.path, use.line
