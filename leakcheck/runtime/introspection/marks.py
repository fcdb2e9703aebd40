"""Is the container that has an id now the one that had it before, or is it another at its address?

Lists and dictionaries have no weak references. They are known again by what they hold: numbers and
text by their hash, all else by identity; none of them is kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any

from leakcheck.runtime.introspection.kinds import is_exactly, is_of
from leakcheck.runtime.introspection.objects import elements_of

ELEMENTS = 4  # at each end
FEWEST_KEPT = 0.5  # of the elements at one end
_VALUES = (int, float, complex, str, bytes)

_Ends = tuple[frozenset[Hashable], frozenset[Hashable]]
KnownBy = weakref.ref[Any] | _Ends


def mark_of(container: Any) -> KnownBy:
    """Return what a container is known again by, which keeps nothing of it alive."""
    try:
        return weakref.ref(container)
    except TypeError:
        elements = elements_of(container)
        return _keys(elements[:ELEMENTS]), _keys(elements[-ELEMENTS:])


def may_be_same(mark: KnownBy, container: Any) -> bool:
    """Say whether a container may be the marked one: one end of that is in it still."""
    if is_of(mark, weakref.ref):
        return mark() is container  # type: ignore[operator]
    elements = elements_of(container)
    ends = _keys((*elements[:ELEMENTS], *elements[-ELEMENTS:]))
    return _has_an_end(ends, mark) or _has_an_end(_keys(elements), mark)


def _has_an_end(keys: frozenset[Hashable], mark: Any) -> bool:
    return any(len(end & keys) >= FEWEST_KEPT * len(end) for end in mark)


def _keys(elements: Sequence[Any]) -> frozenset[Hashable]:
    return frozenset(hash(each) if is_exactly(each, *_VALUES) else (id(each),) for each in elements)
