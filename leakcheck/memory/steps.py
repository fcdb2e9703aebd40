"""Where one training step ends and the next begins in an allocation trace.

Asked in this order: marks somebody set, the optimizer's annotations, the stacks of its requests,
the period of all requests, the valleys of the live bytes. Boundaries are event numbers, at equal
phase.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Any, Final, NamedTuple

from leakcheck.memory.sites import is_user_file, site_of
from leakcheck.memory.trace import Event, Mark, Trace

FEWEST_STEPS: Final = 3
SAME_SHARE: Final = 0.98  # of the requests one period apart are equal in a repeating step
_LAGS_TRIED: Final = 24
_DEEP_VALLEY: Final = 0.5  # of the deepest fall; one step has one
# steps are alike: so many of them have, within a quarter, as many events as the median; in recorded
# single steps, whose layers fall into valleys too, it was at most half of them
_ALIKE_SHARE: Final = 0.8
_ALIKE: Final = 0.25


class Annotation(NamedTuple):
    """A profiler annotation of a snapshot: name, START or END, and when."""

    name: str
    stage: str
    time_us: int


@dataclass(frozen=True, slots=True)
class Steps:
    """Boundaries as event numbers, and how they were found, for people."""

    boundaries: tuple[int, ...]
    found_by: str
    marked: bool = False


def find_steps(trace: Trace) -> Steps:
    """Find the steps of a trace; no boundaries when it shows none."""
    marked = _marked(trace.marks)
    if len(marked) >= FEWEST_STEPS:
        return Steps(marked, f'marks "{_step_label(trace.marks)}"', marked=True)
    period = _period(trace.events)
    if len(period) >= FEWEST_STEPS:
        return Steps(period, "the repeating requests")
    valleys = _valleys(trace)
    if len(valleys) >= FEWEST_STEPS and _alike(valleys):
        return Steps(valleys, "the valleys of the live bytes")
    return Steps((), "")


def kept_share(trace: Trace, boundaries: Sequence[int]) -> float:
    """The share of what a step allocates at most that is still there at its end, the median of all.

    A training step gives back nearly all of it; the layers of one forward pass, whose requests
    repeat like steps, keep theirs (0.25 to 1 in recorded passes).
    """
    curve = [0, *_live_curve(trace.events)]
    shares = []
    for begin, end in pairwise(boundaries):
        rise = max(curve[begin : end + 1]) - curve[begin]
        shares.append((curve[end] - curve[begin]) / rise if rise else 0.0)
    return median(shares) if shares else 0.0


def annotation_marks(annotations: Sequence[Annotation], times: Sequence[int]) -> tuple[Mark, ...]:
    """The ends of the optimizer's steps as marks; `times` are those of the events."""
    ends = sorted(
        a.time_us for a in annotations if "Optimizer.step" in a.name and a.stage.upper() == "END"
    )
    return tuple(
        Mark(bisect_right(times, end), "after optimizer", step) for step, end in enumerate(ends)
    )


def metadata_marks(metadata: Sequence[Any]) -> tuple[Mark, ...]:
    """A mark wherever the user's metadata on the events changes to another text."""
    marks: list[Mark] = []
    seen: Counter[str] = Counter()
    before = ""
    for at, text in enumerate(metadata):
        if isinstance(text, str) and text != before:
            before = text
            if text:
                marks.append(Mark(at, text, seen[text]))
                seen[text] += 1
    return tuple(marks)


def optimizer_marks(frames: Sequence[Any]) -> tuple[Mark, ...]:
    """A mark where requests from inside an optimizer's step give way to others.

    `frames` are the stacks of allocations, innermost first, None for any other event. The label
    names the user's call, so that two optimizers have marks of their own; a step whose closure
    makes everything has none, nor has one that the recording may have cut.
    """
    marks: list[Mark] = []
    seen: Counter[str] = Counter()
    inside = ""
    for at, stack in enumerate(frames):
        if stack is None:
            continue
        call = _optimizer_call(stack)
        if inside and call != inside:
            marks.append(Mark(at, f"after {inside}", seen[inside]))
            seen[inside] += 1
        inside = call
    return tuple(marks)


def _optimizer_call(stack: Any) -> str:
    frames = stack if isinstance(stack, (list, tuple)) else ()
    named = (frame.get("filename", "") for frame in frames if isinstance(frame, dict))
    files = [name for name in named if isinstance(name, str)]
    if not any(map(_is_optimizer, files)):
        return ""
    return site_of(frames) if any(map(is_user_file, files)) else "an optimizer"


@lru_cache(maxsize=4096)
def _is_optimizer(filename: str) -> bool:
    return "torch/optim/" in filename.replace("\\", "/")


def _alike(boundaries: Sequence[int]) -> bool:
    counts = [end - begin for begin, end in pairwise(boundaries)]
    usual = median(counts)
    alike = sum(abs(count - usual) <= _ALIKE * usual for count in counts)
    return alike >= _ALIKE_SHARE * len(counts)


def _step_label(marks: Sequence[Mark]) -> str:
    """The label met most often; the first of those when several are."""
    counts = Counter(mark.label for mark in marks)
    return max(counts, key=counts.__getitem__) if counts else ""


def _marked(marks: Sequence[Mark]) -> tuple[int, ...]:
    label = _step_label(marks)
    return tuple(mark.at for mark in marks if mark.label == label)


def _period(events: Sequence[Event]) -> tuple[int, ...]:
    """Boundaries one period apart, back from the end, each at the least live bytes.

    The requests of the second half must repeat; the step is the least period that they have.
    """
    half = len(events) // 2
    places = [at for at in range(half, len(events)) if events[at].kind in ("alloc", "free")]
    keys = [(events[at].kind, events[at].size) for at in places]
    for lag in _lags(keys):
        same = sum(map(_equal, keys, keys[lag:]))
        if same >= SAME_SHARE * (len(keys) - lag):
            return _repeat(events, lag)
    return ()


def _equal(one: object, other: object) -> bool:
    return one == other


def _lags(keys: Sequence[tuple[str, int]]) -> Iterator[int]:
    """Candidate periods: the distances between requests of the rarest repeating sizes."""
    counts = Counter(keys)
    rare = sorted((n, key) for key, n in counts.items() if n >= 2)[:_LAGS_TRIED]
    lags: Counter[int] = Counter()
    for _, key in rare:
        places = [at for at, other in enumerate(keys) if other == key]
        lags.update(b - a for a, b in pairwise(places))
    fitting = (lag for lag, _ in lags.most_common(_LAGS_TRIED) if lag * 2 <= len(keys))
    yield from sorted(fitting)


def _repeat(events: Sequence[Event], lag: int) -> tuple[int, ...]:
    places = [at for at, event in enumerate(events) if event.kind in ("alloc", "free")]
    live = _live_curve([events[at] for at in places])
    last = range(len(places) - lag, len(places))
    phase = min(last, key=live.__getitem__)
    return tuple(sorted(places[at] + 1 for at in range(phase, -1, -lag)))


def _valleys(trace: Trace) -> tuple[int, ...]:
    """The lowest points between rises and falls of at least half the deepest fall."""
    live = _live_curve(trace.events)
    reversal = _deepest_fall(live) * _DEEP_VALLEY
    if reversal <= 0:
        return ()
    valleys: list[int] = []
    falling, low, high = True, 0, 0
    for at, level in enumerate(live):
        if level < live[low]:
            low = at
        if level > live[high]:
            high = at
        if falling and level - live[low] >= reversal:
            valleys.append(low + 1)
            falling, high = False, at
        elif not falling and live[high] - level >= reversal:
            falling, low = True, at
    return tuple(valleys[1:])  # the first is only where the recording began


def _live_curve(events: Sequence[Event]) -> list[int]:
    """Requested bytes after each event, from 0; a free need not repeat the size."""
    level, curve = 0, []
    sizes: dict[int, int] = {}
    for event in events:
        if event.kind == "alloc":
            sizes[event.block] = event.size
            level += event.size
        elif event.kind == "free":
            level -= sizes.pop(event.block, event.size)
        curve.append(level)
    return curve


def _deepest_fall(curve: Sequence[int]) -> int:
    top = deepest = 0
    for level in curve:
        top = max(top, level)
        deepest = max(deepest, top - level)
    return deepest
