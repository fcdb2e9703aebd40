"""What grew on the devices during an attribution window, by category and place of allocation.

`memory.GrowthWindow` does the looking; here it is opened beside the window that looks at the heap,
and what fails in it is told, so that the rest of the attribution goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from leakcheck.model import DeviceMemory, Notice, Place, Reason
from leakcheck.runtime.readings.meters import is_of_device, place_name

if TYPE_CHECKING:
    from leakcheck.memory.window import GrowthWindow


class DeviceGrowth:
    """Growth windows on the devices among the growing resources; none without such a device."""

    def __init__(self, growing: tuple[str, ...]) -> None:
        self.notices: tuple[Notice, ...] = ()
        self._windows: list[GrowthWindow] = []
        for resource in filter(is_of_device, growing):
            kind, _, index = place_name(resource).partition(":")
            if kind == "cuda" and index.isdecimal():
                self._open(int(index))

    def step(self, number: int) -> None:
        """Note that step `number` is over."""
        for window in list(self._windows):
            self._guarded(window, partial(window.step, number))

    def close(self) -> tuple[DeviceMemory, ...]:
        """End the windows; return what each device's memory is and what of it grew."""
        found = []
        for window in list(self._windows):
            self._guarded(window, partial(window.__exit__, None, None, None))
            if window.memory is not None:
                found.append(window.memory)
        self._windows = []
        return tuple(found)

    def _open(self, device: int) -> None:
        from leakcheck.memory.window import GrowthWindow

        window = GrowthWindow(device)
        try:
            self._windows.append(window.__enter__())
        except Exception as error:
            self._note(error)

    def _guarded(self, window: GrowthWindow, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # the first one is told
            self._note(error)
            if window in self._windows:
                self._windows.remove(window)
                self._guarded(window, partial(window.__exit__, None, None, None))

    def _note(self, error: Exception) -> None:
        if self.notices:
            return
        told = f"{type(error).__name__}: {error}"
        self.notices = (Notice("note", Reason.of("device-unread", error=told)),)


def place_of(memory: DeviceMemory) -> tuple[Place, ...]:
    """Return where the largest growth was allocated, if that is known.

    A site reads "train.py:41 step", as `memory.sites` writes it.
    """
    for growth in memory.grown:
        where, _, function = growth.site.partition(" ")
        path, _, line = where.rpartition(":")
        if path and line.isdecimal():
            return (Place(path, int(line), "", function=function),)
    return ()
