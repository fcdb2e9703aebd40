"""The optimizers of a program: when one has stepped, and whether one waits for a gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.gradients import have_gradients
from leakcheck.runtime.introspection.texts import text_of
from leakcheck.source.tree import ProgramTexts
from leakcheck.source.words import words
from leakcheck.tracked import instances

OPTIMIZER_MODULE = "torch.optim.optimizer"


def an_optimizer_waits() -> bool:
    """Say whether optimizers live and none of their parameters has a gradient yet (50 ms).

    Before its first update an agent plays for hundreds of steps, and keeps the graph of each.
    """
    kind = getattr(sys.modules.get(OPTIMIZER_MODULE), "Optimizer", None)
    if kind is None:
        return False
    optimizers = instances(kind)
    try:
        groups = [group for each in optimizers for group in vars(each).get("param_groups", ())]
        return bool(groups) and not any(have_gradients(each["params"]) for each in groups)
    except Exception:  # the groups are the program's to change, and this is called from its loop
        return False


def program_differentiates() -> bool:
    """Say whether a line of the user's files, as far as they are loaded, asks for gradients."""
    asked = {name: f"{name}(" for name in words("functions", "goes_back")}
    paths = {path for word in asked.values() for path in frames.own_files_with(word)}
    program = ProgramTexts({path: text_of(path) for path in paths})
    return any(file.calls(name) for name, word in asked.items() for file in program.files(word))


def hook_optimizers(listener: Callable[..., None]) -> None:
    """Call `listener(optimizer, args, kwargs)` after every step of any optimizer.

    Registers at once if torch is loaded, else when it loads.
    """

    def register(module: ModuleType) -> None:
        hook = getattr(module, "register_optimizer_step_post_hook", None)
        if hook is not None:
            hook(listener)

    when_loaded(OPTIMIZER_MODULE, register)
