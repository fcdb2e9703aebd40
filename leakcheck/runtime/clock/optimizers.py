"""The optimizers of a program: which of several counts; does one wait for its first gradient?"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.introspection import graph

OPTIMIZER_MODULE = "torch.optim.optimizer"
MOST_OPTIMIZERS = 16  # of each sort that are remembered
RETURNS_THAT_SETTLE = 2  # of an optimizer; what is new beside it is its companion from then on


@dataclass(slots=True)
class _Counted:
    """An optimizer that counts or did, and how often it stepped again after others took over."""

    optimizer: weakref.ref[object]
    returns: int = 0


class OptimizersBeside:
    """Knows the optimizers beside the one that counts: those before it, and its companions.

    One that was never seen takes over at once. When one that counted before steps again, it counts
    again, and those since are companions: of a GAN's two, one counts after the first round. All are
    foreign objects: never kept alive, and compared by identity.
    """

    def __init__(self) -> None:
        self._line: list[_Counted] = []  # in the order they took over; the last one counts
        self._companions: list[weakref.ref[object]] = []

    def makes_way(self, optimizer: object, *, idle: bool) -> bool:
        """Say whether `optimizer`, which does not count, does from now on.

        `idle`: the one that counts is gone, or has not stepped for long.
        """
        line = [each for each in self._line if each.optimizer() is not None]
        for place, each in enumerate(line):
            if each.optimizer() is optimizer:
                each.returns += 1
                self._accompany([later.optimizer for later in line[place + 1 :]])
                self._line = line[: place + 1]
                return True
        known = [one for one in self._companions if one() is optimizer]
        settled = bool(line) and line[-1].returns >= RETURNS_THAT_SETTLE
        if not idle and known:
            return False
        if not idle and settled:
            self._accompany([weakref.ref(optimizer)])
            return False
        if known or settled:  # they change places
            self._companions = [one for one in self._companions if one() is not optimizer]
            self._accompany([gone.optimizer for gone in line[-1:]])
            line = line[:-1]
        # the first one may be what returns after many others
        line = line[:1] + line[1:][-(MOST_OPTIMIZERS - 2) :]
        self._line = [*line, _Counted(weakref.ref(optimizer))]
        return True

    def _accompany(self, new: Sequence[weakref.ref[object]]) -> None:
        alive = [one for one in (*self._companions, *new) if one() is not None]
        self._companions = alive[-MOST_OPTIMIZERS:]


def an_optimizer_waits() -> bool:
    """Say whether optimizers live and none of their parameters has a gradient yet (50 ms).

    Before its first update an agent plays for hundreds of steps, and keeps the graph of each.
    """
    kind = getattr(sys.modules.get(OPTIMIZER_MODULE), "Optimizer", None)
    if kind is None:
        return False
    optimizers = [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]
    try:
        groups = [group for each in optimizers for group in vars(each).get("param_groups", ())]
        return bool(groups) and not any(graph.have_gradients(each["params"]) for each in groups)
    except Exception:  # the groups are the program's to change, and this is called from its loop
        return False


def hook_optimizers(listener: Callable[..., None]) -> None:
    """Call `listener(optimizer, args, kwargs)` after every step of any optimizer.

    Registers at once if torch is loaded, else when it loads.
    """

    def register(module: ModuleType) -> None:
        hook = getattr(module, "register_optimizer_step_post_hook", None)
        if hook is not None:
            hook(listener)

    when_loaded(OPTIMIZER_MODULE, register)
