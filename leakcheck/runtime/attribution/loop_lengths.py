"""How often the loops around the steps turn in all, where what they go over says so.

`range(count)`, a list, a DataLoader: read from the source, and from the objects that live. No code
of the program's runs.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from types import CodeType, FrameType
from typing import Any, TypeGuard

from leakcheck.runtime.attribution.live_numbers import number_of, things_of
from leakcheck.runtime.attribution.loops import loops_around
from leakcheck.runtime.introspection import objects
from leakcheck.runtime.introspection.kinds import attributes_of
from leakcheck.source.tree import Loop

_RANGES = (("builtins", "range"), ("tqdm", "trange"), ("tqdm.auto", "trange"))
_AS_LONG = (  # as what they are given first
    *(("builtins", name) for name in ("enumerate", "reversed", "iter", "list", "tuple")),
    *((module, "tqdm") for module in ("tqdm", "tqdm.auto", "tqdm.notebook")),
    ("rich.progress", "track"),
)


def turns_until(path: str, line: int, frame: FrameType | None) -> int | None:
    """Return how often the loops around a frame turn together before `line` of `path` is reached.

    Those of the callers count as far as the function with the line. None where no function that
    runs has it, where no loop ends before it, or where it is not known how often one turns.
    """
    turns = None
    for code, loops in _by_code(frame):
        inside = _has(code, path, line)
        for loop in loops:
            if inside and loop.lineno <= line <= (loop.end_lineno or 0):
                return turns
            each = _turns(loop.iter, code.co_filename) if _runs_to_its_end(loop) else None
            if each is None:
                return None
            turns = each * (1 if turns is None else turns)
        if inside:
            return turns
    return None


def _runs_to_its_end(loop: Loop) -> TypeGuard[ast.For]:
    """Say whether nothing in a loop leaves it early: no one knows when a break comes."""
    leaves = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)
    return isinstance(loop, ast.For) and not any(isinstance(n, leaves) for n in ast.walk(loop))


def _by_code(frame: FrameType | None) -> Iterator[tuple[CodeType, list[Loop]]]:
    for code, around in groupby(loops_around(frame), key=lambda one: one[0]):
        yield code, [loop for _, loop in around]


def _has(code: CodeType, path: str, line: int) -> bool:
    """Say whether a function has a line of a file, as reports show it or as it is."""
    if os.path.realpath(code.co_filename) != os.path.realpath(path):
        return False
    last = max((each for *_, each in code.co_lines() if each), default=0)
    return code.co_name == "<module>" or code.co_firstlineno <= line <= last


def _turns(over: ast.expr, path: str) -> int | None:
    """Return how many items an expression goes over; None if that is not known."""
    match over:
        case ast.Call(func=function, args=[stop]) if _is_one_of(_RANGES, function, path):
            return number_of(ast.unparse(stop), path, ())
        case ast.Call(func=function, args=[start, stop]) if _is_one_of(_RANGES, function, path):
            return number_of(f"({ast.unparse(stop)}) - ({ast.unparse(start)})", path, ())
        case ast.Call(func=function, args=[inner, *_]) if _is_one_of(_AS_LONG, function, path):
            return _turns(inner, path)
        case ast.Name() | ast.Attribute():
            named = ast.unparse(over)
            length = number_of(f"len({named})", path, ())
            return length if length is not None else _batches(next(things_of(named, path), None))
    return None


def _is_one_of(known: Iterable[tuple[str, str]], function: ast.expr, path: str) -> bool:
    """Say whether what is called is one of these objects of modules, whatever its name is here."""
    told = ast.unparse(function)
    called = next(things_of(told, path), vars(builtins).get(told))
    named = (vars(sys.modules[module]).get(name) for module, name in known if module in sys.modules)
    return called is not None and any(called is one for one in named)


def _batches(loader: Any) -> int | None:
    """Return how many batches a DataLoader of torch's gives, None if the program decides that."""
    loaders = sys.modules.get("torch.utils.data")
    if loaders is None or type(loader) is not loaders.DataLoader:
        return None
    batches = attributes_of(attributes_of(loader).get("batch_sampler"))
    sampler, size = batches.get("sampler"), batches.get("batch_size")
    samples_all = type(sampler) in (loaders.SequentialSampler, loaders.RandomSampler)
    samples_all &= attributes_of(sampler).get("_num_samples") is None
    if not samples_all or type(size) is not int:
        return None
    samples = objects.length_of_dataset(attributes_of(loader).get("dataset"))
    left = 0 if batches.get("drop_last") else size - 1
    return (samples + left) // size or None
