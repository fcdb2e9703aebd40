"""What Python's collector lists, taken so that no thread of the program can tell.

Some of what the collector lists is not finished: up to CPython 3.13 `tuple(generator)` ends in a
SystemError if anyone else refers to its tuple when that is resized (python/cpython#127758 mended
it), and so does a frozenset that `marshal` fills, as an import does. Nothing tells such an object
from a finished one, so none is ever held while another thread may run. Threads take turns between
calls of C's, never inside one, unless a collection starts in it (up to CPython 3.11) and calls back
into Python. So what is listed is sifted in one call of C's, by iterators that switch the collector
off, ask for the list, clear it and switch the collector on again; and tuples and frozensets are
taken from what refers to them, never from the list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial
from gc import disable, enable, get_objects, get_referents, get_referrers, isenabled
from itertools import chain, compress, repeat, starmap, tee
from operator import and_, is_, not_, or_
from typing import Any

_HAS_GIL: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
_CALLED_ONCE: tuple[tuple[()]] = ((),)
# what C code may still be filling, and refuses to when something else refers to it
UNFINISHED = (tuple, frozenset)
_IS_UNFINISHED = {id(kind) for kind in UNFINISHED}.__contains__
_IN_BLOCK = 57  # values that the iterators of one tee have in a block (itertoolsmodule.c)
_ids_of: Callable[[Iterable[Any]], Iterator[int]] = partial(map, id)
# objects whose referrers are asked for at once: the collector compares each reference with each,
# 0.43 s for 768 of them and 0.29 s by a set for any number, in a heap of 168,000 objects; where one
# of 502,000 is larger than the processor's caches, 1.1 s and 3.9 s
MANY = 768
# what a pass takes, as many times as one for a single object: 14 ms there
AS_LONG_AS_ONE = 36  # objects more
BY_A_SET = 40.0


def _ids_of_tee() -> set[int]:
    """Return the ids of the types that `tee` makes objects of, and leave none of those.

    CPython 3.12 ends in a crash where one is there when the interpreter goes.
    """
    iterator: Iterator[Any] = tee(())[0]
    (block,) = (part for part in get_referents(iterator) if part is not type(iterator))
    return {id(type(iterator)), id(type(block))}


_IS_OF_TEE = _ids_of_tee().__contains__


def sifted(
    sift: Callable[..., Iterable[Any]],
    copies: int = 2,
    into: Callable[[Iterable[Any]], Any] = list,
    listed: Iterator[list[Any]] | None = None,
) -> Any:
    """Return `into(sift(...))` for iterators, as many as `copies`, over what is in a list.

    `listed` makes the one list when it is asked for it, of all that is tracked if it is not given.
    `sift` only puts iterators of C's together, and `into` uses them up without a line of Python.
    Of the iterators the first must be asked first: at its end it clears the list, which has in it
    what holds it, and would stay until the next collection.
    """
    first, last, *others = tee(listed or _all_listed(), copies + 1)
    was_enabled: list[bool] = []
    cleared = _silent(map(list.clear, last))
    things = _uncollected(was_enabled, chain.from_iterable(first), cleared)
    return _used_up(into, sift(things, *map(chain.from_iterable, others)), was_enabled)


def _all_listed() -> Iterator[list[Any]]:
    return starmap(get_objects, _CALLED_ONCE)


def _uncollected(was_enabled: list[bool], *parts: Iterable[Any]) -> Iterator[Any]:
    """Chain iterators of C's between switching the collector off and back to what it was."""
    note = map(was_enabled.append, starmap(isenabled, _CALLED_ONCE))
    off = starmap(disable, _CALLED_ONCE)
    on = starmap(enable, compress(_CALLED_ONCE, was_enabled))
    return chain(_silent(note), _silent(off), *parts, _silent(on))


def _silent(calls: Iterator[None]) -> Iterator[None]:
    """Make the calls and yield nothing."""
    return filter(None, calls)


def _used_up(
    into: Callable[[Iterable[Any]], Any], things: Iterable[Any], was_enabled: list[bool]
) -> Any:
    if not _HAS_GIL():
        raise RuntimeError("the heap cannot be searched in a Python that runs without the GIL")
    try:
        return into(things)
    except BaseException:  # out of memory half-way
        if any(was_enabled):
            enable()
        raise


def instances(*kinds: type) -> list[Any]:
    """Return what the collector tracks of some types and those derived from them."""
    kinds_by_id: dict[int, type] = sifted(
        lambda things, same: zip(map(id, map(type, things)), map(type, same), strict=False),
        into=dict,
    )
    return of_kinds({key for key, kind in kinds_by_id.items() if issubclass(kind, kinds)})


def of_kinds(kinds: Set[int]) -> list[Any]:
    """Return what the collector tracks of the types with these ids.

    Of plain tuples and frozensets those that something tracked refers to.
    """
    wanted = {key for key in kinds if not _IS_UNFINISHED(key)}.__contains__
    found: list[Any] = sifted(
        lambda things, same: compress(things, map(wanted, map(id, map(type, same))))
    )
    if any(map(_IS_UNFINISHED, kinds)):
        found += [part for part in finished().values() if id(type(part)) in kinds]
    return found


def finished() -> dict[int, Any]:
    """Return id -> tuple or frozenset, of those that something tracked refers to."""

    def sift(*same: Iterator[Any]) -> Iterable[Any]:
        parts, again = _teed(_referents(*same), 2)
        return compress(parts, map(_IS_UNFINISHED, map(id, map(type, again))))

    found: list[Any] = sifted(sift, copies=3)
    return dict(zip(map(id, found), found, strict=True))


def referents_of_all() -> list[Any]:
    """Return what everything that the collector tracks refers to: all complete tuples, too."""
    found: list[Any] = sifted(_referents, copies=3)
    return found


def _referents(*same: Iterator[Any]) -> Iterator[Any]:
    """Chain what each of some things refers to."""
    return chain.from_iterable(map(get_referents, _askable(*same)))


def _askable(things: Iterator[Any], same: Iterator[Any], again: Iterator[Any]) -> Iterator[Any]:
    """Leave out the module `_asyncio`, of whose parts CPython 3.12.1 never comes to an end.

    And what `tee` is made of: a block of values that came to hold itself would stay, with all the
    others in it, until the next collection, which a program may have switched off.
    """
    of_tee = map(_IS_OF_TEE, map(id, map(type, same)))
    endless = map(is_, again, repeat(sys.modules.get("_asyncio")))
    return compress(things, map(not_, map(or_, of_tee, endless)))


def _teed(things: Iterator[Any], copies: int) -> tuple[Iterator[Any], ...]:
    """Copy an iterator and add values of None, which alone are in the last block at the end."""
    return tee(chain(things, repeat(None, _IN_BLOCK)), copies)


def referents_but_for(kinds: Set[int], holders: list[Any]) -> list[Any]:
    """Return what some objects refer to, but for what is of the types with these ids."""
    found: list[Any] = sifted(
        lambda parts, same: compress(
            parts, map(not_, map(kinds.__contains__, map(id, map(type, same))))
        ),
        listed=starmap(get_referents, (holders,)),
    )
    return found


class Referrers:
    """Finds what refers to objects, at one moment; drop it soon, what it knows is strong.

    `local_values`: what running functions name, which refers to its tuples too. Of tuples and
    frozensets those are found that something refers to now (0.2 s).
    """

    def __init__(self, local_values: Iterable[Any] = ()) -> None:
        self.passes = 0.0  # over all that is tracked, for a single object each
        self._finished = finished()
        self.know(local_values)

    @property
    def ids(self) -> set[int]:
        """The ids of what this object itself refers to others by."""
        return {id(self._finished)}

    def know(self, held: Iterable[Any]) -> None:
        """Note what something refers to that is not tracked, such as an array of objects."""
        named = (each for each in held if _IS_UNFINISHED(id(type(each))))
        self._finished |= {id(each): each for each in named}

    def of(self, things: Iterable[Any]) -> list[Any]:
        """Return what refers to any of some objects."""
        wanted = tuple(things)
        by_a_set = len(wanted) > MANY
        self.passes += BY_A_SET if by_a_set else 1 + len(wanted) / AS_LONG_AS_ONE
        if by_a_set:
            return self._of_many(frozenset(map(id, wanted)))
        found: list[Any] = sifted(
            lambda things, same, again: compress(things, self._is_finished(same, again)),
            copies=3,
            listed=starmap(get_referrers, (wanted,)),
        )
        return found

    def _of_many(self, wanted: Set[int]) -> list[Any]:
        """Ask each object once what it refers to, where to ask each about each takes longer."""

        def sift(*same: Iterator[Any]) -> Iterable[Any]:
            things, asked, kinds, ids = _teed(_askable(*same), 4)
            parts = map(_ids_of, map(get_referents, asked))
            refers = map(not_, map(wanted.isdisjoint, parts))
            return compress(things, map(and_, refers, self._is_finished(kinds, ids)))

        found: list[Any] = sifted(sift, copies=3)
        return found

    def _is_finished(self, things: Iterator[Any], same: Iterator[Any]) -> Iterator[bool]:
        no_tuples = map(not_, map(_IS_UNFINISHED, map(id, map(type, things))))
        return map(or_, no_tuples, map(self._finished.__contains__, map(id, same)))
