"""What Python's collector lists, but for tuples that another thread has not finished.

Up to CPython 3.13 `tuple(generator)` ends in a SystemError if anyone else refers to its tuple when
that is resized (python/cpython#127758 mended it), and the collector lists the tuple from its first
moment. Threads take turns between calls of C's, never inside one: so what is listed is sifted in
the same call, by iterators that ask for the list themselves.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain, compress, repeat, starmap, tee
from operator import add, eq, is_not, mul, or_
from typing import Any

_EMPTY_BYTES = object.__sizeof__(())
_ITEM_BYTES = object.__sizeof__((0,)) - _EMPTY_BYTES


def sifted(
    sift: Callable[..., Iterable[Any]],
    copies: int = 2,
    into: Callable[[Iterable[Any]], Any] = list,
    listing: Callable[..., list[Any]] = gc.get_objects,
    of: tuple[Any, ...] = (),
) -> Any:
    """Return `into(sift(...))` for iterators, as many as `copies`, over what `listing(*of)` lists.

    `sift` only puts iterators of C's together, and `into` uses them up without a line of Python.
    Of the iterators the first must be asked first: at its end it clears the list, which has in it
    what holds it, and would stay until the next collection.
    """
    first, last, *others = tee(starmap(listing, (of,)), copies + 1)
    things = chain(chain.from_iterable(first), map(list.clear, last))
    return into(sift(things, *map(chain.from_iterable, others)))


def instances(*kinds: type) -> list[Any]:
    """Return what the collector tracks of some types and those derived from them."""
    kinds_by_id: dict[int, type] = sifted(
        lambda things, same: zip(map(id, map(type, things)), map(type, same), strict=False),
        into=dict,
    )
    return of_kinds({key for key, kind in kinds_by_id.items() if issubclass(kind, kinds)})


def of_kinds(kinds: Set[int]) -> list[Any]:
    """Return what the collector tracks of the types with these ids; of plain tuples those held."""
    wanted = (kinds - {id(tuple)}).__contains__
    found: list[Any] = sifted(
        lambda things, same: compress(things, map(wanted, map(id, map(type, same))))
    )
    if id(tuple) in kinds:
        found += {id(part): part for part in referents_of_all() if type(part) is tuple}.values()
    return found


def referents_of_all() -> list[Any]:
    """Return what everything that the collector tracks refers to: all complete tuples, too."""
    found: list[Any] = next(starmap(gc.get_referents, starmap(gc.get_objects, ((),))))
    return found


def referring_to(things: Iterable[Any]) -> list[Any]:
    """Return what refers to any of some objects, but for tuples of which an element is missing."""
    found: list[Any] = sifted(_complete, 4, listing=gc.get_referrers, of=tuple(things))
    return found


def _complete(
    things: Iterator[Any], same: Iterator[Any], again: Iterator[Any], once_more: Iterator[Any]
) -> Iterable[Any]:
    others = map(is_not, map(type, same), repeat(tuple))
    elements = map(len, map(gc.get_referents, again))
    full_bytes = map(add, map(mul, elements, repeat(_ITEM_BYTES)), repeat(_EMPTY_BYTES))
    full = map(eq, full_bytes, map(object.__sizeof__, once_more))
    return compress(things, map(or_, others, full))
