"""An attribute of a class of torch's that is a descriptor of ours while anyone listens."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Generic, TypeVar

from leakcheck.runtime.clock.imports import when_loaded

Listener = TypeVar("Listener")


class Tap(Generic[Listener]):
    """Who listens to a class of a module, which need not be loaded yet; they are not kept alive.

    `install` and `remove` put the descriptor there and take it back; both may be called again.
    """

    def __init__(
        self,
        module: str,
        name: str,
        install: Callable[[type], None],
        remove: Callable[[type], None],
    ) -> None:
        self._module, self._name = module, name
        self._install, self._remove = install, remove
        self._listening: weakref.WeakSet[Listener] = weakref.WeakSet()
        self._asked = False
        self._owner: type | None = None  # once it is loaded

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who listens now."""
        return tuple(self._listening)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` from now on what the descriptor hears."""
        self._listening.add(listener)
        if not self._asked:
            self._asked = True
            when_loaded(self._module, self._know)
        elif self._owner is not None:
            self._install(self._owner)

    def stop_listening(self, listener: Listener) -> None:
        """Tell `listener` nothing any more."""
        self._listening.discard(listener)
        if not self._listening and self._owner is not None:
            self._remove(self._owner)

    def _know(self, module: ModuleType) -> None:
        owner = getattr(module, self._name, None)
        if isinstance(owner, type):
            self._owner = owner
            if self._listening:
                self._install(owner)
