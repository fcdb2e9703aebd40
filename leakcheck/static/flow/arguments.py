"""The arguments of one call, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static.flow.values import EMPTY, Value

if TYPE_CHECKING:
    from leakcheck.static.flow.walk import Flow


class Arguments:
    """The evaluated arguments of one call."""

    def __init__(self, flow: Flow, call: cst.Call) -> None:
        """Evaluate every argument, in order."""
        self.positional: list[Value] = []
        self.named: dict[str, Value] = {}
        self.spread = False
        for arg in call.args:
            value = flow.evaluate(arg.value)
            if arg.keyword is not None:
                self.named[arg.keyword.value] = value
            elif arg.star:
                self.spread = True
                self.positional.append(value.contents)
            else:
                self.positional.append(value)

    @property
    def all(self) -> list[Value]:
        """Every argument's value."""
        return [*self.positional, *self.named.values()]

    @property
    def first(self) -> Value:
        """The first argument; EMPTY when there is none."""
        return self.all[0] if self.all else EMPTY

    @property
    def sinks(self) -> frozenset[int]:
        """The growing places whose contents are handed over."""
        return frozenset().union(*(value.contents.sinks for value in self.all))
