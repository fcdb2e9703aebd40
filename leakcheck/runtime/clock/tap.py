"""An attribute of a class of torch's that is a descriptor of ours while anyone listens."""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any, Generic, TypeVar

from leakcheck.runtime.clock.imports import when_loaded

Listener = TypeVar("Listener")


class Tapped:
    """A descriptor of ours, with what the class has under its name; None if it has nothing."""

    def __init__(self, before: Any) -> None:
        self.before = before


class Tap(Generic[Listener]):
    """Who listens to a class of a module, which need not be loaded yet; they are not kept alive.

    `attribute`: the one that is a descriptor of this kind meanwhile; `replaces`: the class has it,
    else its objects alone do.
    """

    def __init__(
        self, module: str, name: str, attribute: str, kind: type[Tapped], *, replaces: bool
    ) -> None:
        self._module, self._name, self._attribute = module, name, attribute
        self._kind, self._replaces = kind, replaces
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
            known = vars(self._owner).get(self._attribute)
            if isinstance(known, self._kind) and self._replaces:
                setattr(self._owner, self._attribute, known.before)
            elif isinstance(known, self._kind):
                delattr(self._owner, self._attribute)

    def _know(self, module: ModuleType) -> None:
        owner = getattr(module, self._name, None)
        if isinstance(owner, type):
            self._owner = owner
            if self._listening:
                self._install(owner)

    def _install(self, owner: type) -> None:
        before = vars(owner).get(self._attribute)
        if (before is not None) is self._replaces and not isinstance(before, self._kind):
            setattr(owner, self._attribute, self._kind(before))
