"""Callbacks and logging that do nothing: trackers, loggers, and the user's own where recognised.

A function of the user's own files is taken for logging by its name or its class's name, and only
if it returns nothing: no caller can miss its result.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leakcheck.runtime.clock import ticks
from leakcheck.runtime.clock.imports import when_loaded
from leakcheck.source.tree import FUNCTIONS, Function, own_nodes

# module, class in it ("" for the module's own functions), what its logging functions are called
TRACKERS = (
    ("logging", "Logger", r"handle"),
    ("torch.utils.tensorboard.writer", "SummaryWriter", r"add_\w+"),
    ("tensorboardX.writer", "SummaryWriter", r"add_\w+"),
    ("wandb.sdk.wandb_run", "Run", r"log|log_artifact"),
    ("mlflow", "", r"log_\w+"),
    ("mlflow.tracking.client", "MlflowClient", r"log_\w+"),
    ("loguru._logger", "Logger", r"_log"),
)
SILENCED = "__leakcheck_silenced__"
LOGS = re.compile(r"_?(log|report|record|track)(_\w+)?|on_\w+|\w*callback|_?write_(log|scalar)\w*")
LOGGER_CLASS = re.compile(r"\w*(Callback|Logger|Meter|Tracker|Recorder|Writer|History|Monitor)s?")


def without_logging(changed: Counter[str]) -> None:
    """Silence all of them; `changed` counts the calls and callbacks that came to nothing."""
    for module, owner, names in TRACKERS:
        when_loaded(module, _silencer(owner, re.compile(names), changed))
    when_loaded("transformers.trainer_callback", lambda m: _hugging_face(m, changed))
    when_loaded("ignite.engine.engine", lambda m: _ignite(m, changed))
    for name in ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer"):
        when_loaded(name, lambda m: _lightning(m, changed))
    setattr(builtins, SILENCED, lambda name: changed.update([name]))
    ticks.rewrites.append(silence)


def silence(tree: ast.Module, path: str) -> None:
    """Empty the functions of a file that log or call back, and return nothing."""
    _silence_in(tree, in_logger=False)


def _silence_in(node: ast.AST, *, in_logger: bool) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            _silence_in(child, in_logger=LOGGER_CLASS.fullmatch(child.name) is not None)
        elif isinstance(child, FUNCTIONS):
            named = in_logger and not child.name.startswith("__")
            if (named or LOGS.fullmatch(child.name)) and _returns_nothing(child):
                _empty(child)
            else:
                _silence_in(child, in_logger=False)
        else:
            _silence_in(child, in_logger=in_logger)


def _returns_nothing(function: Function) -> bool:
    if function.decorator_list:  # a property, a hook that something else registers
        return False
    return not any(map(_gives_something, own_nodes(function)))


def _gives_something(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return node.value is not None
    return isinstance(node, (ast.Yield, ast.YieldFrom))


def _empty(function: Function) -> None:
    call = ast.parse(f"{SILENCED}({function.name!r})").body[0]
    for part in ast.walk(call):
        ast.copy_location(part, function.body[0])
    function.body = [call]


def _silencer(
    owner: str, names: re.Pattern[str], changed: Counter[str]
) -> Callable[[ModuleType], None]:
    def silence_module(module: ModuleType) -> None:
        target = getattr(module, owner, None) if owner else module
        for name in [name for name in dir(target) if names.fullmatch(name)]:
            if callable(getattr(target, name)):
                setattr(target, name, _nothing(f"{module.__name__}.{name}", changed))

    return silence_module


def _nothing(name: str, changed: Counter[str]) -> Callable[..., None]:
    def nothing(*_: object, **__: object) -> None:
        changed[name] += 1

    return nothing


def _hugging_face(module: ModuleType, changed: Counter[str]) -> None:
    add = module.CallbackHandler.add_callback

    def add_own_only(self: Any, callback: Any) -> None:
        kind = callback if isinstance(callback, type) else type(callback)
        if kind.__module__ == module.__name__:  # these steer the training
            add(self, callback)
        else:
            changed[kind.__name__] += 1

    module.CallbackHandler.add_callback = add_own_only


def _ignite(module: ModuleType, changed: Counter[str]) -> None:
    add = module.Engine.add_event_handler

    def add_nothing(self: Any, event: Any, handler: Any, *_: Any, **__: Any) -> Any:
        changed[getattr(handler, "__name__", type(handler).__name__)] += 1
        return add(self, event, lambda *_, **__: None)

    module.Engine.add_event_handler = add_nothing


def _lightning(module: ModuleType, changed: Counter[str]) -> None:
    make = module.Trainer.__init__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        callbacks = kwargs.pop("callbacks", None) or []
        for callback in callbacks if isinstance(callbacks, list) else [callbacks]:
            changed[type(callback).__name__] += 1
        if kwargs.get("logger") not in (None, False):
            changed["logger"] += 1
        make(self, *args, **{**kwargs, "logger": False})

    module.Trainer.__init__ = made
