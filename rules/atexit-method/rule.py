"""atexit.register(self.close): the instance lives until the program ends."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule


class AtexitMethod(Rule):
    """Bound methods, and closures over `self`, that are registered to run at exit."""

    code = "LK208"
    summary = "atexit keeps a bound method, and its instance, until the program ends"
    help = "use weakref.finalize(self, function, resource), which holds no instance"
    default = False
    severity = "info"
    words = ("atexit",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each registration inside a method."""
        for call in module.calls_of("atexit.register"):
            if not call.args or shape.method_of(module, call) is None:
                continue
            if hooks.holds_self(module, call.args[0].value, call):
                yield self.hit(call, "every instance stays until the program ends")
