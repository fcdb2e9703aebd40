"""Every value that crosses a module border: frozen, comparable, free of live objects.

Static analysis makes `Finding`s, a watched run makes `Trend`s, `Suspect`s and `Notice`s, `confirm`
joins the two, and `Report` is what every renderer reads. Lines and columns count from 1; columns
count characters. Sizes are bytes and durations seconds unless a name says otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNCLEAR

Verdict = Literal["growing", "steady", "unclear"]
Ended = Literal["finished", "stopped", "failed", "interrupted", "terminated", "cut off"]
Severity = Literal["error", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
Safety = Literal["safe", "unsafe", "display"]
Kind = Literal[
    "graph",  # autograd Nodes of past steps stay reachable
    "tensor",  # tensors or storages pile up, with or without a graph
    "object",  # plain Python objects pile up
    "native",  # heap in use grows, Python blocks do not
    "device",  # device allocated grows, no tensor accounts for it
    "fragmentation",  # reserved grows, allocated flat; or RSS grows, heap in use flat
    "external",  # device memory of the process grows outside the allocator
    "threads",
    "descriptors",
    "processes",
    "shared-memory",  # blocks of it pile up, which nobody unlinks
]
# what counts the leaks of a kind exactly: its suspects are told if that grows
COUNTERS: Mapping[Kind, str] = {"graph": "graph.nodes", "tensor": "tensors"}
NoticeKind = Literal[
    "cyclic-garbage",  # each collection frees it
    "bounded",  # grew and stopped, or fills a container with a limit
    "gathered",  # by a loop that ended, for what comes after it
    "copied",  # by child processes, of what they share with the program
    "epoch-sawtooth",  # released at the end of each epoch
    "below-tolerance",  # grows, slower than anyone minds
    "note",
]


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A stretch of source text; `cell` is the 1-based notebook cell, or None in a plain file."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text from (line, column) up to (end_line, end_column) by `text`."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that remove a finding: "safe" ones keep behaviour, "display" is only advice."""

    title: str
    edits: tuple[Edit, ...] = ()
    safety: Safety = "display"


EvidenceRole = Literal[
    "graph",  # a call whose result has a graph
    "handed",  # a call that is given the value
    "kept",  # where the value stays
    "returned",  # by a function, to its callers
    "restored",  # a call that puts it into a live object
    "closing",  # a method that ends its object
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place on the way from where a value is made to where it stays; `name` as in the code."""

    location: Location
    role: EvidenceRole
    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in the source that leaks, by one rule; `proved` once a run has shown it.

    `evidence`: the places it follows from, in the order of the flow; empty where it is one place.
    """

    rule: str
    code: str
    location: Location
    message: str
    help: str = ""
    severity: Severity = "warning"
    confidence: Confidence = "high"
    fix: Fix | None = None
    context: str = ""
    proved: bool | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Rule, path and the flagged line's text; not its number, so it survives edits above."""
        return fingerprint(self.rule, self.location.path, " ".join(self.context.split()))


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of every resource, e.g. {"host.rss": 104857600, "graph.nodes": 40}."""

    step: int
    elapsed_s: float
    readings: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Trend:
    """How one resource moved over the settled steps: slope, its interval, and what that means."""

    resource: str
    unit: str
    per_step: float
    low: float
    high: float
    total: float
    steps: int
    verdict: Verdict
    per_hour: float | None = None
    exhausts_in_s: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One reference on the way from a root to what leaks; `edge` as in Python, e.g. ".sum"."""

    edge: str
    holder: str
    retained_bytes: int | None = None
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class LeakTrace:
    """The references from a root, said in words, down to a leaking object.

    `origin` names a global's root by its file, for the id: the module that a script is called
    `__main__` and what imports it knows it by another name; "" where `root` says it as well.
    """

    root: str
    links: tuple[Link, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A source line with the share (0..1) of the growth that was made or is held there."""

    path: str
    line: int
    code: str
    share: float = 1.0
    function: str = ""


HolderKind = Literal[
    "unknown",
    "local",
    "global",
    "attribute",
    "class attribute",
    "closure",
    "default",
    "context variable",
    "class",
    "module",
    "memo",  # an lru_cache
    "gradient",
    "suspended",  # a generator or coroutine
    "traceback",
    "inside",  # an object written in C, known by its type alone
    "exits",
    "graph hook",  # registered on a Node: a table that C++ alone refers to
    "outside",  # no Python object is the root of what holds it
]
_SENTENCES: dict[HolderKind, str] = {
    "local": "local `{0.name}` in {0.function}()",
    "global": "global `{0.qualified}`",
    "attribute": "attribute `{0.qualified}`",
    "class attribute": "class attribute `{0.qualified}`",
    "closure": "closure cell `{0.name}` of {0.function}()",
    "default": "default argument `{0.name}` of {0.function}()",
    "context variable": "context variable `{0.name}`",
    "class": "class `{0.name}`",
    "module": "module `{0.name}`",
    "memo": "lru_cache of {0.function}()",
    "gradient": "gradient of a parameter",
    "suspended": "suspended {0.function}()",
    "traceback": "local {0.name} of {0.function}(), kept by a traceback",
    "inside": "a `{0.owner}` object",
    "exits": "functions registered with `{0.name}`",
    "graph hook": "hook {0.name}() of a Node of the autograd graph",
}


@dataclass(frozen=True, slots=True)
class Holder:
    """What holds a leak: a name in a scope, or what is known of it without one; `str` says it.

    `owner` is the class of an attribute or the module of a global, "" for the script's own;
    `function` of what nothing refers to: those that other threads are in, whose variable it may be;
    `root`: where the references to it begin, None if that is the holder itself; `module`: of the
    class of an attribute, as a program and a library may each have a class of one name.
    """

    kind: HolderKind = "unknown"
    name: str = ""
    owner: str = ""
    function: str = ""
    root: Holder | None = None
    module: str = field(default="", compare=False, repr=False)

    def __bool__(self) -> bool:
        """Whether anything is known to hold it."""
        return self.kind != "unknown"

    def __str__(self) -> str:
        """Say it in words, as in "attribute `Meter.kept`, from local `meter` in main()"."""
        if self.kind == "outside" and self.function:
            return f"perhaps a variable of {self.function}, in another thread"
        if self.kind == "outside":
            return f"held outside Python: {self.root or 'no Python object refers to it'}"
        own = _SENTENCES.get(self.kind, "").format(self)
        return f"{own}, from {self.root}" if self.root else own

    @property
    def qualified(self) -> str:
        """The name with the class or module it belongs to."""
        return f"{self.owner}.{self.name}" if self.owner else self.name

    @property
    def start(self) -> Holder:
        """Where the references to what leaks begin."""
        return self.root or self

    @property
    def named(self) -> Holder:
        """The nearest to what leaks that the source has a name for; an unknown one if none has."""
        known = (each for each in (self, self.start) if each.name and each.kind != "traceback")
        return next(known, Holder())


@dataclass(frozen=True, slots=True)
class KnownLeak:
    """A published leak of a library: which versions, what helps, where it is told.

    `affected`: conditions such as "<1.4.0", "" for all versions; `installed`: the version here.
    """

    package: str
    affected: str
    cure: str
    source: str
    installed: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is judged as it is, as a code with its fields; `report.reasons` has the words.

    So that what was found can be compared, counted and translated without reading sentences.
    """

    code: str
    fields: tuple[tuple[str, Field], ...] = ()

    @classmethod
    def of(cls, code: str, /, **fields: Field) -> Reason:
        """Return a reason with its fields by name."""
        return cls(code, tuple(fields.items()))

    def get(self, name: str) -> Field:
        """Return a field, None if there is none of that name."""
        return dict(self.fields).get(name)


# an amount has its unit in its name, or beside it; a reason is a part of the sentence
Field: TypeAlias = str | int | float | Reason | tuple[str | Reason, ...] | None


@dataclass(frozen=True, slots=True)
class Suspect:
    """One leak of the run: what grows, how fast, who holds it and where it is made.

    `processes`: the ranks or child processes that have it, where several were watched.
    """

    kind: Kind
    what: str
    objects_per_step: float | None = None
    bytes_per_step: float | None = None
    holder: Holder = Holder()
    trace: LeakTrace | None = None
    locations: tuple[Place, ...] = ()
    rules: tuple[str, ...] = ()
    fix: Reason | None = None
    library: bool = False
    evidence: Reason | None = None
    known: KnownLeak | None = None
    reason: Reason | None = None
    processes: tuple[str, ...] = ()

    @property
    def links(self) -> tuple[Link, ...]:
        """The references from the root to what leaks, as far as they are known."""
        return self.trace.links if self.trace else ()

    @property
    def fingerprint(self) -> str:
        """Kind and holder path with indices folded, so the same leak keeps its name across runs."""
        edges = tuple(link.edge for link in self.links)
        root = (self.trace.origin or self.trace.root) if self.trace else str(self.holder)
        return fingerprint(self.kind, root, *edges)

    @property
    def is_extended(self) -> bool:
        """Whether it is one object that is made larger, and so has a size and no count."""
        known = self.kind in ("tensor", "object") and bool(self.holder)
        return known and self.objects_per_step is None


RetainedBy = Literal[
    "local",  # of a function that runs
    "suspended",  # a local of a generator or coroutine that waits
    "exception",  # its traceback keeps the frames, and these their locals
    "memo",
    "hook",
    "closure",
    "global",
    "class attribute",
    "context variable",
    "memory",  # of a tensor that is gone: another tensor shows it
    "saved tensor",  # by a Node of a graph that is alive
    "graph hook",  # registered on a Node: a table that only C++ refers to
    "cycle",  # only by itself: the next collection frees it
    "outside",  # by nothing that can be seen
]


@dataclass(frozen=True, slots=True)
class Retained:
    """An object that should be gone, and what keeps it: values only, it keeps nothing alive.

    `node`: of a graph, that saved it or whose hook leads to it; `also`: how many others the same
    references keep; `threads`: the user's functions that other threads are in.
    """

    what: str
    by: RetainedBy
    holder: Holder
    trace: LeakTrace
    node: str = ""
    also: int = 0
    threads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth a line that is no leak, e.g. garbage that each collection frees.

    `step`: at which growth was seen that will end, or that nobody minds; 0 for all of the run.
    """

    kind: NoticeKind
    reason: Reason
    step: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """What was run, for how long, and why watching ended.

    `ended` is None while it runs and of a loop; the exit status after a signal is 128 + its number.
    `process`: the name of the child process that it was, "" of the program itself.
    """

    command: str
    steps: int
    seconds: float
    warmup_steps: int = 0
    clock: str = ""
    rank: int | None = None
    world_size: int | None = None
    torch: str | None = None
    device: str | None = None
    stopped_by: str = ""
    exit_status: int | None = None
    ended: Ended | None = None
    process: str = ""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What watching cost: median per step, and as a share of the run's time."""

    per_step_us: float
    share: float


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be checked, with the reason in one line."""

    path: str
    reason: str


Category = Literal[
    "parameters",
    "gradients",
    "optimizer state",
    "buffers",
    "inputs",
    "outputs",
    "activations",  # saved for backward
    "workspaces",  # scratch that cuBLAS and its like keep
    "temporaries",  # tensors that only Python holds
    "rounding and slop",  # what blocks count beyond what was asked for
    "unexplained",
]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The live bytes of one category, as asked for; what blocks add is a row of its own."""

    category: Category
    size_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Device memory at one phase of a step; the rows sum to `allocated_bytes` by construction.

    `reserved_bytes` is what the allocator holds, `used_bytes` what the driver says the device has
    in use, None when it was not asked. `sites` maps category and place to bytes, largest first.
    """

    phase: str
    step: int
    rows: tuple[LedgerRow, ...]
    allocated_bytes: int
    reserved_bytes: int
    used_bytes: int | None = None
    sites: tuple[tuple[Category, str, int], ...] = ()

    def size_bytes(self, category: Category) -> int:
        """The live bytes of one category, 0 when it has none."""
        return sum(row.size_bytes for row in self.rows if row.category == category)


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """Live bytes that one category, made at one place, adds each step; "" is no known place."""

    category: Category
    site: str
    bytes_per_step: float


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """How much of a device's live memory is expected at a phase, how much is not, and what grew.

    `measured` says where the numbers come from: the device, or a traced program without one.
    """

    device: str
    measured: Literal["device", "traced"]
    page: LedgerPage
    expected_bytes: int
    unexpected_per_step: float
    grown: tuple[MemoryGrowth, ...] = ()

    @property
    def unexpected_bytes(self) -> int:
        """Live bytes beyond the expected ones; negative when less is held."""
        return self.page.allocated_bytes - self.expected_bytes


@dataclass(frozen=True, slots=True)
class Entries:
    """The functions that add entries to a container that grows, and those that remove them.

    `kept`: so many of them a request stay; of a request that finished, and one that was aborted,
    None where that cannot be told.
    """

    holder: Holder
    added_in: tuple[str, ...]
    removed_in: tuple[str, ...]
    kept: float
    kept_of_finished: float | None = None
    kept_of_aborted: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The requests that a server answered, which are the steps of its run.

    `looked_at`: the most in flight when a step was taken; `per_step`: requests between two steps.
    """

    finished: int
    aborted: int
    most_in_flight: int
    looked_at: int
    per_step: float
    entries: tuple[Entries, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one invocation learned; renderers read nothing else."""

    findings: tuple[Finding, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    checked_files: int = 0
    verdict: Verdict | None = None
    reason: Reason | None = None
    trends: tuple[Trend, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    notices: tuple[Notice, ...] = ()
    run: Run | None = None
    overhead: Overhead | None = None
    samples: tuple[Sample, ...] = ()
    ranks: tuple[Report, ...] = field(default=())
    memory: tuple[DeviceMemory, ...] = ()
    load: Load | None = None

    @property
    def is_of_source(self) -> bool:
        """Whether nothing was run: it says what a check found."""
        return self.run is None and self.verdict is None

    @property
    def exit_code(self) -> int:
        """1 when something leaks, 2 when leakcheck could not tell or could not read, else 0."""
        if self.is_of_source:
            if self.findings:
                return EXIT_FOUND
            return EXIT_UNCLEAR if self.unreadable else EXIT_CLEAN
        by_verdict = {"growing": EXIT_FOUND, "steady": EXIT_CLEAN}
        return by_verdict.get(self.verdict or "unclear", EXIT_UNCLEAR)


def fingerprint(*parts: str) -> str:
    """Hash the parts into twelve hexadecimal digits that are the same on every machine."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:12]
