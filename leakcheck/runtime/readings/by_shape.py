"""How many graphs torch.compile, and how many plans cuFFT, has made for new shapes.

Counts that are told and never judged: each is kept up to a number, 8 graphs of a function and 4,096
plans of a device by default.
"""

from __future__ import annotations

import sys

from leakcheck.model import Notice, Reason
from leakcheck.runtime.readings.categories import is_category
from leakcheck.runtime.readings.compiled import USUAL_LIMIT, graphs_made
from leakcheck.runtime.readings.series import Series

GRAPHS, PLANS = "compiled.graphs", ".fft-plans"
WORTH_A_WORD = USUAL_LIMIT + 1  # made after the warm-up: more than one function keeps


def is_by_shape(resource: str) -> bool:
    """Say whether a resource is such a count."""
    return resource == GRAPHS or resource.endswith(PLANS)


def has_no_trend(resource: str) -> bool:
    """Say whether a resource is told in another way than by its rate: such a count, a category."""
    return is_category(resource) or is_by_shape(resource)


def read() -> dict[str, int]:
    """Return the counts so far that are not 0; a device that the program has not is not asked."""
    counts = {GRAPHS: graphs_made(), **_plans()}
    return {resource: count for resource, count in counts.items() if count}


def notices(slow: Series, after: int) -> tuple[Notice, ...]:
    """Tell of counts that rose since the step `after`."""
    told = []
    for resource in filter(is_by_shape, slow.resources):
        steps, counts = slow.column(resource, after=after)
        if counts and counts[-1] - counts[0] >= WORTH_A_WORD:
            made = Reason("graphs" if resource == GRAPHS else "fft-plans")
            since = steps[-1] - steps[0]
            by_shape = Reason.of("made", made=made, count=counts[-1] - counts[0], steps=since)
            told.append(Notice("note", by_shape))
    return tuple(told)


def _plans() -> dict[str, int]:
    # torch.backends.cuda.cufft_plan_cache would keep an object for each device
    ask = getattr(sys.modules.get("torch"), "_cufft_get_plan_cache_size", None)
    cuda = sys.modules.get("torch.cuda")
    if ask is None or cuda is None or not cuda.is_initialized():
        return {}
    try:
        return {f"cuda:{one}{PLANS}": int(ask(one)) for one in range(int(cuda.device_count()))}
    except RuntimeError:  # a torch without cuFFT
        return {}
