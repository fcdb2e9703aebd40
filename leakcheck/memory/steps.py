"""Where one training step ends and the next begins in an allocation trace.

Asked in this order: marks somebody set, the optimizer's annotations, the stacks of its requests,
the period of all requests, the valleys of the live bytes, the period of how long blocks live. The
last three count only where what repeats are whole passes. Boundaries are event numbers, at equal
phase.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from operator import ne
from statistics import median
from typing import Any, Final, NamedTuple

from leakcheck.memory.passes import Key, Lives, lags, whole_passes
from leakcheck.memory.sites import is_user_file, site_of
from leakcheck.memory.trace import Event, Mark, Trace

FEWEST_STEPS: Final = 3
SAME_SHARE: Final = 0.98  # of the requests one period apart are equal in a repeating step
_SAME_LIVES: Final = 0.95  # 0.97 to 0.99 measured: what the last step leaves lives otherwise
_STILL_REPEATS: Final = 0.5  # of a step's requests; what comes before is no step
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
    """Boundaries as event numbers, and how they were found, for people.

    Without any, `layers` are the boundaries of what repeats and is not known to be a whole pass.
    """

    boundaries: tuple[int, ...]
    found_by: str
    layers: tuple[int, ...] = ()


def find_steps(trace: Trace) -> Steps:
    """Find the steps of a trace; no boundaries when it shows none."""
    marked = _marked(trace.marks)
    if len(marked) >= FEWEST_STEPS:
        return Steps(marked, f'marks "{_step_label(trace.marks)}"')
    lives = Lives(trace.events)
    refused: tuple[int, ...] = ()
    for found_by, boundaries in _repetitions(trace, lives):
        if len(boundaries) < FEWEST_STEPS:
            continue
        if whole_passes(lives, boundaries):
            return Steps(boundaries, found_by)
        refused = refused or boundaries
    return Steps((), "", refused)


def _repetitions(trace: Trace, lives: Lives) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What repeats in a trace, the surest first; it may be the layers of one pass."""
    places = _places(trace.events)
    for boundaries in _periods(lives, places, lives.requests(places), SAME_SHARE):
        yield "the repeating requests", boundaries
    valleys = _valleys(lives.level[1:])
    if len(valleys) >= FEWEST_STEPS and _alike(valleys):
        yield "the valleys of the live bytes", valleys
    for boundaries in _periods(lives, places, lives.rhythm(places), _SAME_LIVES):
        yield "the repeating lives of blocks", boundaries


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


def _places(events: Sequence[Event]) -> list[int]:
    """The requests, without the run of frees in which a program that ends gives all back."""
    places = [at for at, event in enumerate(events) if event.kind in ("alloc", "free")]
    kinds = ((kind, len(list(run))) for kind, run in groupby(events[at].kind for at in places))
    frees = [length for kind, length in kinds if kind == "free"]
    longest, last = max(frees[:-1], default=0), frees[-1] if frees else 0
    ends = bool(longest) and events[places[-1]].kind == "free" and last > 2 * longest
    return places[: longest - last] if ends else places


def _periods(
    lives: Lives, places: Sequence[int], keys: Sequence[Key], share: float
) -> Iterator[tuple[int, ...]]:
    """Boundaries one period apart, back from the end, each at the least live bytes.

    The requests of the second half must repeat; the least period that they have comes first.
    """
    late = keys[len(keys) // 2 :]
    unlike: dict[int, int] = {}  # lag -> requests that are not repeated
    for lag in lags(late):
        differ = sum(map(ne, late, late[lag:]))
        explained = any(lag % least == 0 and differ * 2 >= unlike[least] for least in unlike)
        if differ <= (1 - share) * (len(late) - lag) and not explained:
            unlike[lag] = differ
            yield _repeat(lives, places, lag)


def _repeat(lives: Lives, places: Sequence[int], lag: int) -> tuple[int, ...]:
    last = range(len(places) - lag, len(places))
    phase = min(last, key=lambda at: lives.level[places[at] + 1])
    rhythm = lives.rhythm(places)
    boundaries = [phase]
    for at in range(phase - lag, -1, -lag):  # each ends a step
        ended, following = rhythm[max(at + 1 - lag, 0) : at + 1], rhythm[at + 1 : at + 1 + lag]
        if (Counter(ended) & Counter(following)).total() < _STILL_REPEATS * lag:
            break
        boundaries.append(at)
    return tuple(places[at] + 1 for at in reversed(boundaries))


def _valleys(live: Sequence[int]) -> tuple[int, ...]:
    """The lowest points between rises and falls of at least half the deepest fall."""
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


def _deepest_fall(curve: Sequence[int]) -> int:
    top = deepest = 0
    for level in curve:
        top = max(top, level)
        deepest = max(deepest, top - level)
    return deepest
