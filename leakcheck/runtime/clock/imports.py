"""Act right after a module has been loaded, without importing it for the program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def when_loaded(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call `act(module)` now if the module is loaded, else right after it has run."""
    module = sys.modules.get(name)
    if module is not None:
        act(module)
    else:
        sys.meta_path.insert(0, _WhenLoaded(name, act))


class _WhenLoaded(MetaPathFinder):
    """Wraps the loader of one module; steps aside once the module has run."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._act = act
        self._asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name or self._asking:
            return None
        self._asking = True
        try:
            spec = _found_by_others(name, path, target)
        finally:
            self._asking = False
        if spec is None or spec.loader is None:
            return None
        run_module = spec.loader.exec_module

        def run_and_act(module: ModuleType) -> None:
            run_module(module)
            if self in sys.meta_path:  # else a second spec was made for the same module
                sys.meta_path.remove(self)
                self._act(module)

        spec.loader.exec_module = run_and_act  # type: ignore[method-assign]
        return spec


def _found_by_others(
    name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    # several may wait for the same module; other finders keep their turn after ours
    for finder in [*sys.meta_path]:
        if isinstance(finder, _WhenLoaded):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return PathFinder.find_spec(name, path, target)
