"""Chooses one step clock among several: a GAN has two optimizers, an epoch may have two loaders."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

OVER_AFTER, OVER_AFTER_S = 200, 5.0  # steps of others, and seconds, without one that counts
MOST_REMEMBERED = 16  # of each sort
RETURNS_THAT_SETTLE = 2  # of one clock; any new one beside it never counts from then on


@dataclass(slots=True)
class _Counted:
    """One that counts or did, and how often it stepped again after others took over."""

    one: weakref.ref[object]
    returns: int = 0


class Beside:
    """Knows the others beside the one that counts: those before it, and its companions.

    One that was never seen takes over at once. When one that counted before steps again, it counts
    again, and those since are companions: of a GAN's two, one counts after the first round. All are
    foreign objects: never kept alive, and compared by identity.
    """

    def __init__(self) -> None:
        self._line: list[_Counted] = []  # in the order they took over; the last one counts
        self._companions: list[weakref.ref[object]] = []

    def makes_way(self, other: object, *, idle: bool) -> bool:
        """Say whether `other`, which does not count, does from now on.

        `idle`: the one that counts is gone, or has not stepped for long.
        """
        line = [each for each in self._line if each.one() is not None]
        for place, each in enumerate(line):
            if each.one() is other:
                each.returns += 1
                self._accompany([later.one for later in line[place + 1 :]])
                self._line = line[: place + 1]
                return True
        known = self.knows(other)  # as a companion
        settled = bool(line) and line[-1].returns >= RETURNS_THAT_SETTLE
        if not idle and known:
            return False
        if not idle and settled:
            self._accompany([weakref.ref(other)])
            return False
        if known or settled:  # they change places
            self._companions = [one for one in self._companions if one() is not other]
            self._accompany([gone.one for gone in line[-1:]])
            line = line[:-1]
        # the first one may be what returns after many others
        line = line[:1] + line[1:][-(MOST_REMEMBERED - 2) :]
        self._line = [*line, _Counted(weakref.ref(other))]
        return True

    def knows(self, other: object) -> bool:
        """Say whether `other` is one of those that counted or stepped beside them."""
        known = [*(each.one for each in self._line), *self._companions]
        return any(one() is other for one in known)

    def _accompany(self, new: Sequence[weakref.ref[object]]) -> None:
        alive = [one for one in (*self._companions, *new) if one() is not None]
        self._companions = alive[-MOST_REMEMBERED:]
