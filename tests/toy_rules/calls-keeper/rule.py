"""A rule that looks into imported modules: a call of a function whose own body calls `keep`."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class CallsKeeper(Rule):
    """An imported function keeps what it is given."""

    code = "TOY103"
    summary = "an imported function keeps what it is given"
    default = False
    words = ("import",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Flag a call where the imported module's function of that name calls `keep`."""
        for call in module.calls:
            home, _, name = module.qualified(call.func).rpartition(".")
            other = module.project.find(home, module.path) if module.project and home else None
            for function in other.functions if other else ():
                if function.name.value == name and any(
                    dotted(inner.func) == "keep" and other.function_of(inner) is function
                    for inner in other.calls
                ):
                    yield self.hit(call, f"`{name}` keeps what it is given")
