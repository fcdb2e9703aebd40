"""The data files as sets to ask: what does this torch name do to a graph?"""

from __future__ import annotations

from functools import cache
from typing import Any

from leakcheck.static.names import table

_NAMESPACES = ("torch.", "torch.linalg.", "torch.special.", "torch.fft.", "torch.nn.functional.")


@cache
def words(section: str, key: str, file: str = "torch_api") -> frozenset[str]:
    """Return a list of the data files as a set."""
    entry: Any = table(file)[section]
    return frozenset(entry[key])


def framework(section: str, key: str) -> frozenset[str]:
    """Return a list of frameworks.toml as a set (the keys of a table)."""
    return words(section, key, "frameworks")


def is_hook_without_grad(name: str) -> bool:
    """Tell whether Lightning calls a method of this name with gradients off."""
    return name in framework("lightning", "under_no_grad")


def torch_function(name: str) -> str:
    """Return the bare name of a function of torch or torch.nn.functional; empty for others."""
    head, _, tail = name.rpartition(".")
    return tail if f"{head}." in _NAMESPACES else ""


def is_loss_function(name: str) -> bool:
    """Whether a qualified name is one of torch's loss functions."""
    head, _, tail = name.rpartition(".")
    return head in ("torch.nn.functional", "torch") and tail in words("functions", "losses")


def is_loss_module(name: str) -> bool:
    """Whether a qualified name is one of torch.nn's losses."""
    return name.startswith("torch.nn.") and name.endswith("Loss") and name.count(".") <= 4


def is_learnable_module(name: str) -> bool:
    """Whether a qualified name is a torch.nn class with parameters of its own."""
    head, _, tail = name.rpartition(".")
    if head not in ("torch.nn", "torch.nn.parallel"):
        return any(name.startswith(prefix) for prefix in framework("modules", "factories"))
    known = words("modules", "without_parameters") | words("modules", "containers") | {"Parameter"}
    return tail[:1].isupper() and tail not in known and not tail.endswith("Loss")


def makes_module(base: str) -> bool:
    """Whether a class with this base is a torch.nn.Module."""
    return base in framework("modules", "bases") or is_learnable_module(base)


def grad_mode(name: str) -> str:
    """Return "off", "on" or "set" for torch's switches of gradient mode; empty for others."""
    return next((key for key in ("off", "on", "set") if name in words("modes", key)), "")
