"""What forked children, such as a DataLoader's workers, copy of the memory they share.

A child shares its parent's pages until either writes to one, which the writer then has for itself.
To read a Python object is to write to it, as that counts its references: so a worker that reads a
data set of Python objects copies it page by page (pytorch/pytorch#13246). What is resident stays
the same meanwhile. The kernel tells which pages are a process's own, but walks all of them for it:
10 to 25 ms for 390 MB. So few children are asked, ever more rarely.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leakcheck.runtime.introspection.kinds import (
    attributes_of,
    derives_from,
    entries_of,
    is_exactly,
    name_of,
)
from leakcheck.runtime.readings.proc import rows_of
from leakcheck.tracked import instances

MOST_ASKED = 4  # children; the others are taken to be like them
RARER = 1.5  # times the steps, from one look to the next
LEAST_NAMED_BYTES = 8 << 20  # copied, for the heap to be searched for the loader: 0.1 s
DEEPEST = 4  # data sets inside data sets that are looked through: subsets, concatenations
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
MOST_TOGETHER = 64  # data sets in a list


@dataclass(frozen=True, slots=True)
class Copied:
    """What `processes` children together have copied since they were first seen, and still share.

    `container`: the longest that the data set of a loader has, as `Texts.items`, where as many
    objects are in it as each child copied pages, else ""; `length`: how many those are.
    """

    processes: int
    copied_bytes: int
    shared_bytes: int
    container: str = ""
    length: int = 0

    @property
    def most_bytes(self) -> int:
        """What is copied when nothing is shared any more."""
        return self.copied_bytes + self.shared_bytes


@dataclass(frozen=True, slots=True)
class _Pages:
    own_bytes: int
    anonymous_bytes: int  # shared or not

    def copied_since(self, first: _Pages) -> int:
        """What is its own now, and was not, without what it has allocated meanwhile."""
        allocated_bytes = max(0, self.anonymous_bytes - first.anonymous_bytes)
        return max(0, self.own_bytes - first.own_bytes - allocated_bytes)

    @property
    def shared_bytes(self) -> int:
        return max(0, self.anonymous_bytes - self.own_bytes)


class CopyMeter:
    """Asks the children which pages are theirs alone."""

    def __init__(self) -> None:
        self._first: dict[int, _Pages] = {}  # by process
        self._next_step = 0
        self._container: tuple[str, int] | None = None  # once it was searched for
        self.most: Copied | None = None  # that was copied at once, by children that all ran

    def read(self, step: int, children: Sequence[int]) -> None:
        """Compare each child with what it was when it was first seen."""
        self._first = {pid: pages for pid, pages in self._first.items() if pid in children}
        if step < self._next_step and self._first:
            return
        self._next_step = round(RARER * step)
        asked = {pid: pages for pid in children[:MOST_ASKED] if (pages := _pages_of(pid))}
        if not asked:
            return
        self._first = asked | self._first
        share = len(children) / len(asked)
        copied = sum(pages.copied_since(self._first[pid]) for pid, pages in asked.items())
        if self.most is None or copied * share > self.most.copied_bytes:
            shared = sum(pages.shared_bytes for pages in asked.values())
            of_all = round(copied * share), round(shared * share)
            self.most = Copied(len(children), *of_all, *self._named(copied / len(asked)))

    def _named(self, of_each_bytes: float) -> tuple[str, int]:
        """Return the container that may be copied, if it has as many objects as are pages."""
        if self._container is None and of_each_bytes >= LEAST_NAMED_BYTES:
            self._container = _longest_container()
        name, length = self._container or ("", 0)
        return (name, length) if length >= of_each_bytes / PAGE_BYTES else ("", 0)


def _pages_of(pid: int) -> _Pages | None:
    """Ask the kernel (since Linux 4.14); None of a process that has ended, or that is not ours."""
    rows = rows_of(f"/proc/{pid}/smaps_rollup", b"Private_Dirty", b"Anonymous")
    return None if rows is None else _Pages(*rows)


def _longest_container() -> tuple[str, int]:
    """Return the longest list, tuple, dict or set that a data set with workers has, and its length.

    The workers have copies of the data set that the loader's iterator has in this process.
    """
    loaders = sys.modules.get("torch.utils.data.dataloader")
    kind = getattr(loaders, "_MultiProcessingDataLoaderIter", None)
    iterators = instances(kind) if kind is not None else []
    found = [
        (len(value), f"{name_of(type(owner))}.{name}")
        for iterator in iterators
        for owner in _data_sets(attributes_of(iterator).get("_dataset"), DEEPEST)
        for name, value in entries_of(attributes_of(owner))
        if is_exactly(value, list, tuple, dict, set)
    ]
    length, name = max(found, default=(0, ""))
    return name, length


def _data_sets(owner: Any, deep: int) -> Iterator[Any]:
    """Yield a data set, and those that its attributes are or have in a list: of a subset, say."""
    yield owner
    kind: type = sys.modules["torch.utils.data"].Dataset  # there, as its loader is
    for _, value in entries_of(attributes_of(owner)) if deep else ():
        parts = [value, *value[:MOST_TOGETHER]] if is_exactly(value, list, tuple) else [value]
        for part in parts:
            if derives_from(type(part), kind):
                yield from _data_sets(part, deep - 1)
