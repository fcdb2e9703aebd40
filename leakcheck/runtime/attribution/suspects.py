"""Leads into suspects: grouped by what holds them, the same leak once, the worst first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from leakcheck.model import Holder, Kind, LeakTrace, Link, Place, Reason, Suspect
from leakcheck.runtime.attribution.advice import (
    COMPILE_ONCE,
    LOOK_OUTSIDE,
    NO_CREATE_GRAPH,
    by_growth,
    fix_for,
    is_general,
)
from leakcheck.runtime.attribution.library import is_optimizer_state
from leakcheck.runtime.attribution.trace import NO_ROOTS, OUTSIDE, Told
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.texts import file_of
from leakcheck.runtime.readings.devices import devices_in_use
from leakcheck.source.acts import is_stacked
from leakcheck.source.backwards import CREATES, creating_graph
from leakcheck.source.rewritten import adds_without_graph

RANKS: tuple[Kind, ...] = (
    "graph",
    "tensor",
    "device",
    "threads",
    "descriptors",
    "processes",
    "shared-memory",
    "object",
    "native",
    "external",
    "fragmentation",
)
MINOR_BYTES = 1024.0  # beside a worse leak, plain objects below this a step are not worth a line
NUMBERS = ("float", "int", "bool")
LOG_TIMES = 2.0  # as many bytes in hooks or records, beside which a log of numbers is no leak
FEW_SEEN = 1.3  # times as many blocks were gained as those of the elements that were seen,
EACH_STEP = 0.5  # objects a step in each of several containers: they do not grow by turns
FEW_BLOCKS = 5.0  # and so many a step more or less: the forward pass leaves one or two
MOST_PLACES = 3
MOST_HOLDER_PLACES = 3


@dataclass(frozen=True, slots=True)
class Lead:
    """One thing that grows, as found; several leads may be one leak."""

    kind: Kind
    what: str
    told: Told
    lines: Counter[Site] = field(default_factory=Counter)  # that add to it
    made_at: Counter[Site] = field(default_factory=Counter)
    held_at: tuple[Site, ...] = ()  # where the holders themselves are made
    objects_per_step: float | None = None
    bytes_per_step: float | None = None
    blocks_per_step: float = 0.0  # of Python's allocator
    whole: bool = False  # the bytes are all that a container gains, whatever is in it
    plain: bool = False  # and nothing in it has memory that was not weighed
    resources: frozenset[Kind] = frozenset()  # what the objects stand for
    of_hooks: bool = False  # a table of hooks, whose number was counted
    parts: int = 1  # containers that were merged
    scalar: bool | None = False  # None: what keeps a graph is no tensor
    evidence: Reason | None = None
    compiled: bool = False  # what torch.compile made keeps it
    growth: str = ""  # how what holds it grows, where not as a list: see `advice.by_growth`
    view_keeps_bytes: int = 0  # by each, of which it shows a part; 0 if it is no such view


def suspects_from(leads: list[Lead], blocks_per_step: float = 0.0) -> tuple[Suspect, ...]:
    """Merge leads that share a holder, drop what a worse one explains, rank the rest.

    `blocks_per_step`: what Python's allocator was measured to gain, 0 if that is not known.
    """
    merged: list[Lead] = []
    for lead in sorted(leads, key=_rank):
        same = next((i for i, known in enumerate(merged) if _is_same_leak(known, lead)), None)
        if same is None:
            merged.append(lead)
        else:
            merged[same] = _merge(merged[same], lead)
    kept = [lead for lead in merged if not _is_explained(lead, merged)]
    if len(kept) == 1 and kept[0].blocks_per_step:
        kept = [_to_scale(kept[0], blocks_per_step)]
    return tuple(_suspect(lead) for lead in kept)


def _to_scale(lead: Lead, blocks_per_step: float) -> Lead:
    """Correct the rates of the only lead: of fifty lists that grow by turns a window sees a few."""
    factor = blocks_per_step / lead.blocks_per_step
    near = 1 / FEW_SEEN < factor < FEW_SEEN
    near |= abs(blocks_per_step - lead.blocks_per_step) < FEW_BLOCKS
    by_turns = (lead.objects_per_step or 0.0) < EACH_STEP * lead.parts
    if lead.kind != "object" or near or not blocks_per_step or not by_turns:
        return lead
    known = (lead.objects_per_step, lead.bytes_per_step)
    objects, in_bytes = (None if rate is None else rate * factor for rate in known)
    return replace(lead, objects_per_step=objects, bytes_per_step=in_bytes)


def _rank(lead: Lead) -> tuple[int, bool, bool, float]:
    outside = lead.told.trace.root in NO_ROOTS
    follows = is_optimizer_state(lead.told.holder)
    weight = -(lead.bytes_per_step or 0.0)
    return RANKS.index(lead.kind), lead.told.library or outside, follows, weight


def _is_same_leak(known: Lead, lead: Lead) -> bool:
    if not known.told.trace.root and not lead.told.trace.root:  # no time to find what holds them
        return (known.kind, known.what) == (lead.kind, lead.what)
    if known.told.grows_at and known.told.grows_at == lead.told.grows_at:
        return True
    ours, theirs = known.told.edges, lead.told.edges
    if ours[0] == theirs[0] and ours[0] in NO_ROOTS:
        return known.kind == lead.kind
    if known.told.holder.kind == lead.told.holder.kind == "graph hook":
        return known.kind == lead.kind and known.told.holder == lead.told.holder
    held = bool(known.told.holder)
    alike = held and known.kind == lead.kind and _named(known) == _named(lead)
    if alike and known.lines and known.lines.keys() == lead.lines.keys():
        return True  # one line adds to several lists, as of each layer, in whatever way reached
    shorter = min(len(ours), len(theirs))
    return ours[:shorter] == theirs[:shorter] and (shorter > 1 or len(ours) == len(theirs))


def _named(lead: Lead) -> Holder:
    """Return the holder, wherever it was found from."""
    held = lead.told.holder
    return held if held.kind == "outside" else replace(held, root=None)


def _merge(known: Lead, lead: Lead) -> Lead:
    """Keep the worse kind; the lines of whichever knows the place where it is added."""
    longer = max(known.told, lead.told, key=lambda told: len(told.edges))
    # two containers, or tensors of two shapes: else it is the same things, seen in two ways
    apart = known.kind == lead.kind and None not in (known.objects_per_step, lead.objects_per_step)
    both = sum if apart else max
    within = known.whole and known.told.grows_at == lead.told.grows_at
    counts = [each.objects_per_step for each in (known, lead) if each.objects_per_step is not None]
    sizes = [each.bytes_per_step for each in (known, lead) if each.bytes_per_step is not None]
    return replace(
        known,
        told=longer,
        lines=known.lines or lead.lines,
        made_at=known.made_at + lead.made_at,
        held_at=known.held_at or lead.held_at,
        objects_per_step=(sum(counts) if apart else counts[0]) if counts else None,
        bytes_per_step=(max if within else both)(sizes) if sizes else None,
        blocks_per_step=both((known.blocks_per_step, lead.blocks_per_step)),
        parts=known.parts + lead.parts,
        view_keeps_bytes=max(known.view_keeps_bytes, lead.view_keeps_bytes),
    )


def _is_explained(lead: Lead, leads: list[Lead]) -> bool:
    held = [known for known in leads if not is_unheld(known)]
    if is_unheld(lead) and held:
        return True  # the graph holds these in C++
    worse = [known for known in held if RANKS.index(known.kind) < RANKS.index(lead.kind)]
    if lead.told.library and any(not known.told.library for known in leads):
        return lead.kind == "object"
    if lead.of_hooks:
        return False  # they were counted, whatever else they fill
    counted = any(known.of_hooks for known in held)
    return is_minor(lead) and (bool(worse) or counted or _is_log_beside(lead, held))


def _is_log_beside(lead: Lead, leads: list[Lead]) -> bool:
    """Say whether this is a log of numbers, and something else grows faster."""
    least = LOG_TIMES * (lead.bytes_per_step or 0.0)
    others = (known for known in leads if known.kind == "object" and not _is_log(known))
    return _is_log(lead) and any((known.bytes_per_step or 0.0) >= least for known in others)


def _is_log(lead: Lead) -> bool:
    return lead.what.rpartition(" of ")[2] in NUMBERS


def is_minor(lead: Lead) -> bool:
    """Say whether a lead is of plain objects, and so few that only something beside it counts."""
    return lead.kind == "object" and (lead.bytes_per_step or 0.0) < MINOR_BYTES


def is_unheld(lead: Lead) -> bool:
    """Say whether a lead is of tensors that no Python object is known to hold."""
    return lead.kind == "tensor" and lead.told.trace.root in NO_ROOTS


def _suspect(lead: Lead) -> Suspect:
    outside = lead.told.trace.root == OUTSIDE and lead.kind in ("graph", "tensor")
    creating = creating_graph(map(file_of, frames.own_files_with(CREATES))) if outside else []
    places = _places(lead)
    if len(creating) == 1 and (not places or devices_in_use()):
        first = frames.place(Site(*creating[0]))
        others = (one for one in places if (one.path, one.line) != (first.path, first.line))
        places = (first, *others)[:MOST_PLACES]
    code = places[0].code if places else ""
    scalar = lead.scalar
    if scalar and places and is_stacked(file_of(places[0].path), lead.told.holder.named.name):
        scalar = False
    fix = by_growth(fix_for(code, lead.kind, scalar=scalar), lead.growth)
    if lead.view_keeps_bytes and fix is not None and is_general(fix):
        fix = Reason.of("copy-the-view", kept_bytes=lead.view_keeps_bytes)
    if lead.compiled:
        fix = COMPILE_ONCE
    if outside and not (lead.whole and lead.lines):  # of a container it is known what adds
        fix = NO_CREATE_GRAPH if creating else LOOK_OUTSIDE
    if outside and lead.told.holder.function and not creating:
        fix = Reason.of("drop-in-thread", function=lead.told.holder.function)
    return Suspect(
        kind=lead.kind,
        what=lead.what,
        objects_per_step=lead.objects_per_step,
        bytes_per_step=lead.bytes_per_step,
        holder=lead.told.holder,
        trace=_underlined(lead.told.trace),
        locations=places,
        fix=fix,
        library=lead.told.library and not _held_by_user(lead),
        evidence=lead.evidence,
    )


def _held_by_user(lead: Lead) -> bool:
    # a trainer's frame may be the root of a module that the user wrote
    adding = [site for site, count in lead.lines.items() if count > 0]
    return any(frames.is_own(site.path) for site in (*adding, *lead.held_at))


def _places(lead: Lead) -> tuple[Place, ...]:
    places: list[Place] = []
    for counts in (lead.lines, lead.made_at):
        positive = Counter({site: count for site, count in counts.items() if count > 0})
        if lead.kind == "graph":
            positive = _with_graph(positive)
        for site, count in positive.most_common(MOST_PLACES):
            if all((each.line, each.function) != (site.line, site.function) for each in places):
                places.append(frames.place(site, count / positive.total()))
    known = {(each.line, each.code) for each in places}
    holders = [frames.place(site) for site in lead.held_at]
    new = [each for each in holders if (each.line, each.code) not in known]
    return tuple(places[:MOST_PLACES] + new[:MOST_HOLDER_PLACES])


def _with_graph(lines: Counter[Site]) -> Counter[Site]:
    """Leave out the lines that add to the same container what has no graph, unless all do."""
    adding = {
        site: count
        for site, count in lines.items()
        if not adds_without_graph(frames.place(site).code)
    }
    return Counter(adding or lines)


def _underlined(trace: LeakTrace) -> LeakTrace:
    """Mark the last reference as suspect if no container on the way was seen to grow."""
    if not trace.links or any(link.suspect for link in trace.links):
        return trace
    last = trace.links[-1]
    marked = Link(last.edge, last.holder, last.retained_bytes, suspect=True)
    return replace(trace, links=(*trace.links[:-1], marked))
