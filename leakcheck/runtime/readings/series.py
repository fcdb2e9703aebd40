"""Readings in columns of fixed size: the sentinel must not be the leak it looks for.

A list of dictionaries cost 335 bytes a step; here a reading is one 8-byte slot. When the rows run
out every second one is dropped and the stride between readings doubles, so any number of steps
fits and the readings stay evenly spread.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping

MISSING = -(1 << 62)  # the resource had no reading in this row
GARBAGE = "garbage"  # bytes that a collection freed before the other readings of its row


class Series:
    """Columns of integers by resource, one row a reading, at most `capacity` rows.

    `resources`: those whose columns are made now, and not when they are first read.
    """

    def __init__(self, capacity: int = 2048, resources: Iterable[str] = ()) -> None:
        self.capacity = capacity + capacity % 2
        self.stride = 1
        self._rows = 0
        self._steps = array("q", bytes(8 * self.capacity))
        self._elapsed_us = array("q", bytes(8 * self.capacity))
        self._columns = {name: array("q", [MISSING]) * self.capacity for name in resources}

    def __len__(self) -> int:
        return self._rows

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources read so far, in the order they appeared."""
        return tuple(self._columns)

    @property
    def last_step(self) -> int:
        """The step of the newest reading; 0 before the first."""
        return self._steps[self._rows - 1] if self._rows else 0

    def append(self, step: int, elapsed_s: float, readings: Mapping[str, int]) -> None:
        """Store one row; a resource that is absent from `readings` gets a gap."""
        if self._rows == self.capacity:
            self._thin()
        row = self._rows
        self._steps[row] = step
        self._elapsed_us[row] = round(elapsed_s * 1e6)
        columns = self._columns
        for resource in columns:
            columns[resource][row] = MISSING
        for resource, value in readings.items():
            if resource not in columns:
                columns[resource] = array("q", [MISSING]) * self.capacity
            columns[resource][row] = value
        self._rows = row + 1

    def newest(self) -> dict[str, int]:
        """Return the readings of the last row."""
        row = self._rows - 1
        columns = self._columns.items() if self._rows else ()
        return {name: column[row] for name, column in columns if column[row] != MISSING}

    def column(self, resource: str, after: int = 0) -> tuple[list[int], list[int]]:
        """Return the steps beyond `after` at which `resource` was read, and what was read."""
        return self._taken(resource, self._rows_of(resource, after))

    def comparable(self, resource: str, after: int = 0) -> tuple[list[int], list[int]]:
        """Return the same without the readings that follow a collection, unless all of them do.

        The others have the garbage in them that waits: the two kinds tell no growth together.
        """
        rows = self._rows_of(resource, after)
        collected = self._rows_of(GARBAGE, after)
        return self._taken(resource, [row for row in rows if row not in collected] or rows)

    def _rows_of(self, resource: str, after: int) -> list[int]:
        column = self._columns.get(resource)
        if column is None:
            return []
        known = (row for row in range(self._rows) if column[row] != MISSING)
        return [row for row in known if self._steps[row] > after]

    def _taken(self, resource: str, rows: list[int]) -> tuple[list[int], list[int]]:
        column = self._columns.get(resource, ())
        return [self._steps[row] for row in rows], [column[row] for row in rows]

    def rows(self) -> Iterator[tuple[int, float, dict[str, int]]]:
        """Yield (step, elapsed seconds, readings) from the oldest row to the newest."""
        for row in range(self._rows):
            readings = {
                resource: column[row]
                for resource, column in self._columns.items()
                if column[row] != MISSING
            }
            yield self._steps[row], self._elapsed_us[row] / 1e6, readings

    def seconds_per_step(self) -> float | None:
        """Return the mean duration of a step; None below two readings."""
        steps = self.last_step - self._steps[0]
        elapsed_us = self._elapsed_us[self._rows - 1] - self._elapsed_us[0]
        return elapsed_us / 1e6 / steps if self._rows > 1 and steps else None

    def clear(self) -> None:
        """Forget every row, keeping the storage."""
        self._rows = 0
        self.stride = 1

    def _thin(self) -> None:
        half = self.capacity // 2
        for column in (self._steps, self._elapsed_us, *self._columns.values()):
            for row in range(half):  # in place: a slice would show in the heap
                column[row] = column[2 * row + 1]
        self._rows = half
        self.stride *= 2
