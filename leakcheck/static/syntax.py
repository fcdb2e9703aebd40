"""Source text to a LibCST tree, and the few questions about nodes that need no analysis.

The standard library's parser runs first: it is ten times faster, refuses hostile nesting with an
exception where LibCST's native parser would overflow the stack, and lets rules pass over a file.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar, cast

import libcst as cst

from leakcheck.errors import SourceError

DEEPEST_NESTING = 400  # LibCST's native parser overflows an 8 MB stack somewhere above 1,000
LONGEST_UNKNOWN_SYNTAX = 200_000  # characters we let LibCST try when `ast` does not know the syntax

_TRIVIA = ("whitespace", "lpar", "rpar", "leading", "lines_after", "trailing", "lbr", "rbr")
_PUNCTUATION = {"comma", "semicolon", "equal", "dot", "colon", "at", "operator", "indent"}
_PUNCTUATION |= {"header", "footer", "first_colon", "second_colon", "separator", "posonly_ind"}
_PUNCTUATION |= {"encoding", "default_indent", "default_newline", "has_trailing_newline"}
# what a field holds in a node's place; asked of CSTNode, isinstance() would run Python's abc
_NO_NODE = frozenset({str, bool, type(None), cst.MaybeSentinel})
_fields: dict[type, tuple[str, ...]] = {}
PLAIN_TYPES = frozenset({"float", "int", "str", "bool"})
_VALIDATE = cst.CSTNode.__post_init__
_OUTLINE_WORDS = {"ctx", "id", "attr", "arg", "kind", "type_comment"}
_outline_fields: dict[type, tuple[str, ...]] = {}

A = TypeVar("A", bound=ast.AST)


@lru_cache(maxsize=8)  # the engine, the facts and some rules ask for a few files in turn
def outline(source: str) -> ast.Module | None:
    """Parse with the standard library; None when only LibCST may know the syntax.

    Raises SourceError for source that no parser should be tried on.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (RecursionError, MemoryError):
        raise SourceError("nested too deeply to be checked") from None
    except SyntaxError as error:
        if "too many" in (error.msg or "") or len(source) > LONGEST_UNKNOWN_SYNTAX:
            raise SourceError(f"line {error.lineno or 1}: {error.msg}") from None
        return None
    except ValueError as error:  # a NUL byte, or a lone surrogate
        raise SourceError(str(error)) from None
    return tree


def depth(tree: ast.Module) -> int:
    """Count the levels of the tree, without recursion."""
    return len(_levels(tree))


def outline_nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """List the nodes of the tree level by level, but for the contexts of names."""
    return tuple(itertools.chain.from_iterable(_levels(tree)))


def outline_nodes_of(tree: ast.Module, *kinds: type[A]) -> list[A]:
    """List the nodes of exactly these kinds, one kind after another, each level by level."""
    by_kind = _by_kind(tree)
    return cast("list[A]", [node for kind in kinds for node in by_kind.get(kind, ())])


def outline_walk(node: ast.AST) -> list[ast.AST]:
    """List a node and all below it; a third of the time that ast.walk takes."""
    found = [node]
    for each in found:
        found += below(each)
    return found


def outline_at_top(outline: ast.Module) -> Iterator[ast.AST]:
    """Yield what stands outside of all functions and classes."""
    todo: list[ast.AST] = [*outline.body]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo += below(node)


@lru_cache(maxsize=1)
def _levels(tree: ast.Module) -> list[list[ast.AST]]:
    levels: list[list[ast.AST]] = []
    level: list[ast.AST] = [tree]
    while level:
        levels.append(level)
        level = [child for node in level for child in below(node)]
    return levels


@lru_cache(maxsize=1)
def _by_kind(tree: ast.Module) -> dict[type, list[ast.AST]]:
    found: dict[type, list[ast.AST]] = defaultdict(list)
    for node in itertools.chain.from_iterable(_levels(tree)):
        found[type(node)].append(node)
    return found


def below(node: ast.AST) -> list[ast.AST]:
    """List a node's children, but for the context of a name."""
    found: list[ast.AST] = []
    kind = type(node)
    names = _outline_fields.get(kind)
    if names is None:
        names = _outline_fields[kind] = _with_nodes(kind)
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _with_nodes(kind: type[ast.AST]) -> tuple[str, ...]:
    """Name the fields that may hold nodes."""
    if kind is ast.Constant:
        return ()
    return tuple(name for name in kind._fields if name not in _OUTLINE_WORDS)


def parse(source: str) -> cst.Module:
    """Parse into LibCST's tree; SourceError when that cannot be done."""
    try:
        with _unvalidated():
            return cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        reason = (error.message.splitlines() or ["cannot be parsed"])[0]
        raise SourceError(f"line {error.raw_line}: {reason}") from None
    except RecursionError:
        raise SourceError("nested too deeply to be checked") from None


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Let LibCST make nodes without validating them, as the parser makes no invalid ones.

    That is a quarter of the time of parsing.
    """
    cst.CSTNode.__post_init__ = tuple  # type: ignore[assignment]  # a call that does nothing
    try:
        yield
    finally:
        cst.CSTNode.__post_init__ = _VALIDATE  # type: ignore[method-assign]


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """List the child nodes that carry meaning, in source order: no whitespace, no punctuation."""
    found: list[cst.CSTNode] = []
    kind = type(node)
    names = _fields.get(kind)
    if names is None:
        names = _fields[kind] = _meaningful(kind)
    for name in names:
        value = getattr(node, name)
        held = type(value)
        if held is tuple or held is list:
            found += value
        elif held not in _NO_NODE:
            found.append(value)
    return found


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the node and everything below it in source order, without recursion."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(children(node))


def dotted(node: cst.BaseExpression) -> str:
    """Spell a chain of names, "self.meter.update"; empty for anything else."""
    if type(node) is cst.Name:
        return node.value
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def constant(node: cst.BaseExpression | None) -> object:
    """Evaluate a literal string or number, True, False or None; `...` when it is none of them."""
    match node:
        case cst.SimpleString() | cst.Integer() | cst.Float():
            return _literal(node.value)
        case cst.Name(value="True"):
            return True
        case cst.Name(value="False"):
            return False
        case cst.Name(value="None") | None:
            return None
    return ...


@lru_cache(maxsize=1_000)
def _literal(text: str) -> object:
    """Evaluate the text of one token.

    `ast.literal_eval` would leave a cycle of nested functions behind at every call.
    """
    tree = ast.parse(text, mode="eval")
    return cast("ast.Constant", tree.body).value


def bindings(node: cst.CSTNode) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Pair what an assignment binds with what it is given: two pairs for `kept, told = [], {}`."""
    match node:
        case cst.Assign(targets=targets, value=value):
            return [pair for each in targets for pair in _paired(each.target, value)]
        case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
            return [(target, value)]
    return []


def _paired(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    displays = (cst.Tuple, cst.List)
    if not isinstance(target, displays) or not isinstance(value, displays):
        return [(target, value)]
    elements = [*target.elements, *value.elements]
    starred = any(isinstance(element, cst.StarredElement) for element in elements)
    if starred or len(target.elements) != len(value.elements):
        return [(target, value)]
    inner = zip(target.elements, value.elements, strict=True)
    return [pair for left, right in inner for pair in _paired(left.value, right.value)]


def argument(call: cst.Call, keyword: str, position: int | None = None) -> cst.Arg | None:
    """Find an argument by its keyword, else by its position; None when it is not given."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg
    if position is None or position >= len(call.args):
        return None
    leading = call.args[: position + 1]
    return None if any(arg.keyword or arg.star for arg in leading) else leading[-1]


def got_attribute(call: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """Return the object and the name that `getattr(object, "name", ...)` asks for.

    A name that only a run tells is made of the variable that holds it.
    """
    if dotted(call.func) != "getattr" or len(call.args) < 2:
        return None
    name = _attribute_named(call.args[1].value)
    return (call.args[0].value, name) if name else None


def set_attribute(call: cst.Call) -> tuple[cst.Attribute, cst.BaseExpression] | None:
    """Return what `setattr(object, name, value)` or `register_buffer(name, value)` writes."""
    match call:
        case cst.Call(func=cst.Name("setattr"), args=[holder, key, value]):
            owner = holder.value
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("register_buffer"))):
            if len(call.args) < 2:
                return None
            key, value = call.args[:2]
        case _:
            return None
    name = _attribute_named(key.value)
    return (cst.Attribute(owner, cst.Name(name)), value.value) if name else None


def _attribute_named(key: cst.BaseExpression) -> str:
    name = constant(key)
    if isinstance(key, cst.Name) and not isinstance(name, str):
        return f"any_{key.value}"
    return name if isinstance(name, str) else ""


def parameters(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """List the named parameters in order: positional-only, positional, keyword-only."""
    listed = function.params
    return [*listed.posonly_params, *listed.params, *listed.kwonly_params]


def _meaningful(kind: type) -> tuple[str, ...]:
    """Name the fields of a kind that hold nodes with a meaning."""
    if not dataclasses.is_dataclass(kind):
        return ()
    names = [field.name for field in dataclasses.fields(kind) if field.type is not str]
    kept = [n for n in names if not n.startswith(_TRIVIA) and n not in _PUNCTUATION]
    return tuple(_ORDERS.get(kind, tuple(kept)))


# dataclass order is not source order for these
_ORDERS: dict[type, tuple[str, ...]] = {
    cst.IfExp: ("body", "test", "orelse"),
    cst.FunctionDef: ("decorators", "name", "type_parameters", "params", "returns", "body"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Arg: ("keyword", "value"),
}
