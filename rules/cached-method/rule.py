"""functools.lru_cache on a method: the cache belongs to the class and keeps every `self`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from leakcheck.model import Severity
from leakcheck.static import shape
from leakcheck.static.facts.runs import is_made_once
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import parameters


class CachedMethod(Rule):
    """Cache decorators on methods with `self`, the unlimited and the heavy ones first.

    A limited cache whose keys hold more than `self` is there for those; a few light objects that
    it keeps as well are no leak.
    """

    code = "LK301"
    summary = "a cache decorator on a method keeps every instance alive"
    help = (
        "keep the values on the object (functools.cached_property if it takes no argument), or "
        "cache a function of plain values"
    )
    words = ("lru_cache", "functools.cache", "@cache")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the decorators of each method."""
        for function in module.functions:
            decorator = growth.cache_decorator(module, function)
            owner = module.parent(module.parent(function) or function)
            if decorator is None or not isinstance(owner, cst.ClassDef):
                continue
            if growth.at_most_one(decorator) or _few_instances(module, owner):
                continue
            if shape.is_method(function) and _keeps_many(module, owner, function, decorator):
                member = module.member_of(function)
                once = member is not None and is_made_once(member)
                keyed = growth.unlimited(module, decorator) and _is_asked_for_inputs(
                    module, owner, function
                )
                yield self.hit(
                    decorator,
                    f"the cache keeps every `{owner.name.value}` it was asked for",
                    severity=_severity(module, owner, decorator),
                    confidence="low" if once and not keyed else "high",
                )


def _few_instances(module: Module, owner: cst.ClassDef) -> bool:
    """Members of an enumeration, classes and loggers live as long as the program anyway."""
    return any(base.rpartition(".")[2] in _IMMORTAL for base in module.bases(owner))


_IMMORTAL = frozenset(
    ["Enum", "IntEnum", "StrEnum", "Flag", "type", "EnumMeta", "ABCMeta", "Logger", "LoggerAdapter"]
)


def _keeps_many(
    module: Module, owner: cst.ClassDef, function: cst.FunctionDef, decorator: cst.Decorator
) -> bool:
    turns_over = _PER_SAMPLE.search(function.name.value) is not None
    if turns_over and growth.limit(decorator) is not None:
        return False
    starred = isinstance(function.params.star_arg, cst.Param) or function.params.star_kwarg
    keyed_by_self_alone = len(parameters(function)) == 1 and not starred
    return keyed_by_self_alone or _severity(module, owner, decorator) == "warning"


def _is_asked_for_inputs(module: Module, owner: cst.ClassDef, function: cst.FunctionDef) -> bool:
    """Whether `forward` asks for its own input: a tensor is a key that is never asked for again."""
    forward = module.methods(owner).get("forward")
    inputs = [] if forward is None else parameters(forward)[1:2]
    if forward is None or not inputs or not shape.has_base(module, owner, "module-classes"):
        return False
    annotation = inputs[0].annotation
    if annotation and module.qualified(annotation.annotation) != "torch.Tensor":
        return False
    wanted, index = f"self.{function.name.value}", module.index_of(forward)
    calls = (one for one in module.facts.facts.calls if one.function == index)
    asked = (given.value for one in calls if one.spelled == wanted for given in one.arguments)
    return any(one.kind == "name" and one.text == inputs[0].name.value for one in asked)


_PER_SAMPLE = re.compile(r"getitem|collate")  # each sample's entry pushes an older one out


def _severity(module: Module, owner: cst.ClassDef, decorator: cst.Decorator) -> Severity:
    heavy = growth.unlimited(module, decorator) or _is_heavy(module, owner)
    return "warning" if heavy or _gives_tensors(module, decorator) else "info"


def _gives_tensors(module: Module, decorator: cst.Decorator) -> bool:
    """Whether the method is annotated to return a tensor, which the cache keeps as well."""
    function = module.parent(decorator)
    returns = function.returns if isinstance(function, cst.FunctionDef) else None
    return returns is not None and module.qualified(returns.annotation) == "torch.Tensor"


def _is_heavy(module: Module, owner: cst.ClassDef) -> bool:
    """A data set, or what holds tensors; a module through bases in other files as well."""
    if shape.has_base(module, owner, "dataset-classes") or shape.holds_tensors(module, owner):
        return True
    info = analysis_of(module).class_info(owner)
    return info is not None and info.is_module
