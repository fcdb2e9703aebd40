"""functools.cache on a function of tensors or modules: keys by identity, held for good."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, parameters, walk


class CachedTensorArgument(Rule):
    """Cache decorators on functions whose parameters are tensors, modules or data sets."""

    code = "LK302"
    summary = "a cache is keyed by tensors or modules, so it never hits and keeps them all"
    help = "cache by plain values, or keep the result on the object itself"
    words = ("lru_cache", "functools.cache", "@cache")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the decorators and parameters of each function that is no method."""
        for function in module.functions:
            decorator = growth.cache_decorator(module, function)
            if decorator is None or shape.is_method(function):
                continue
            for parameter in parameters(function):
                if kind := _kind(module, parameter, growth.unlimited(module, decorator)):
                    name = parameter.name.value
                    if _is_of_python(function, name):
                        continue
                    shown = parameter.annotation is not None or _is_used(function, name)
                    yield self.hit(
                        decorator,
                        f"the cache keeps every {kind} passed as `{name}`",
                        confidence="high" if shown else "low",
                    )
                    break
            else:
                if _closes_over_self(module, function):
                    yield self.hit(decorator, "the cache holds `self`, and `self` the cache")


def _kind(module: Module, parameter: cst.Param, unlimited: bool) -> str:
    if parameter.annotation is None:
        return _BY_NAME.get(parameter.name.value, "")
    for node in walk(parameter.annotation.annotation):
        if isinstance(node, (cst.Name, cst.Attribute)):
            named = module.qualified(node) or dotted(node)
            if kind := _BY_TYPE.get(named, ""):
                return kind
            if unlimited and named in _CALLABLE:
                return "function or bound method"
    return ""


def _is_used(function: cst.FunctionDef, name: str) -> bool:
    """Whether the function itself does anything with it that a plain name of one cannot do."""
    used_so = False
    for node in walk(function.body):
        match node:
            case cst.Comparison(
                left=cst.Name(value=used),
                comparisons=[cst.ComparisonTarget(comparator=cst.SimpleString())],
            ) if used == name:
                return False  # `if model == "base"`: it is a name
            case cst.Attribute(value=cst.Name(value=used)) | cst.Call(func=cst.Name(value=used)):
                used_so |= used == name
            case cst.For(iter=cst.Name(value=used)) | cst.Subscript(value=cst.Name(value=used)):
                used_so |= used == name
    return used_so


def _is_of_python(function: cst.FunctionDef, name: str) -> bool:
    """Whether it is one of Python's modules, which have files: there are few."""
    nodes = (node for node in walk(function.body) if isinstance(node, cst.Attribute))
    return any(dotted(node) == f"{name}.__file__" for node in nodes)


def _closes_over_self(module: Module, function: cst.FunctionDef) -> bool:
    """A cached function nested in a method, kept on `self`."""
    method = shape.method_of(module, function)
    if method is None or not shape.mentions(function.body, "self"):
        return False
    return any(
        isinstance(node, cst.Assign)
        and dotted(node.value) == function.name.value
        and any(dotted(t.target).startswith("self.") for t in node.targets)
        for node in shape.own_nodes(method)
    )


_CALLABLE = ("typing.Callable", "collections.abc.Callable")
_BY_TYPE = {
    "torch.Tensor": "tensor", "torch.nn.Module": "module", "torch.nn.Parameter": "parameter",
    "torch.utils.data.Dataset": "data set", "torch.utils.data.DataLoader": "loader",
    "transformers.PreTrainedModel": "model", "numpy.ndarray": "array",
}  # fmt: skip
_BY_NAME = {"model": "model", "module": "module", "tensor": "tensor", "dataset": "data set"}
