"""del buffer, while a view of it from the loop before is still bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static.facts.model import AttributeEffect, Binding, Call, FileFacts
from leakcheck.static.facts.nodes import span
from leakcheck.static.module import Module
from leakcheck.static.queries import aliases
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.shape import api
from leakcheck.static.syntax import outline, outline_nodes


class ViewOutlivesDel(Rule):
    """What is deleted or cleared to be freed at once, and kept by a view or by another list."""

    code = "LK317"
    summary = "a tensor is deleted and collected while a view of it is still bound"
    help = "delete the view as well, or clone it"
    proof = "static only: it lasts until the function returns, and nothing grows"
    words = ("collect()", "empty_cache(", "malloc_trim(", ".clear()")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each name that a function deletes before it empties a cache or collects."""
        facts = module.facts.facts
        for function in _functions(module):
            for holder, emptied in aliases.outlived(function):
                message = f"`{holder.id}` keeps the entries of `{emptied}`"
                yield self.hit(span(holder), message, confidence="medium")
        seen: set[Binding] = set()
        for call in facts.calls:
            if call.method not in ("collect", "empty_cache", "malloc_trim") or call.function < 0:
                continue
            for deleted in _deleted_before(facts, call):
                for view in _views(facts, deleted, call):
                    if view not in seen:
                        seen.add(view)
                        yield self.hit(
                            view.at,
                            f"`{view.name}` keeps `{deleted.name}` after its `del`",
                            confidence="medium",
                        )


def _functions(module: Module) -> Iterator[ast.AST]:
    tree = outline(module.source)
    for node in outline_nodes(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _deleted_before(facts: FileFacts, call: Call) -> list[AttributeEffect]:
    return [
        use
        for use in facts.local_uses
        if use.how == "del" and use.function == call.function and use.at < call.at
    ]


def _views(facts: FileFacts, deleted: AttributeEffect, call: Call) -> Iterator[Binding]:
    """Yield the names that a slice of it is bound to, up to the collection."""
    here = [bound for bound in facts.bindings if bound.function == deleted.function]
    if any(bound.name == deleted.name and bound.value.kind == "empty" for bound in here):
        return  # a slice of a list has its entries, which may be anything
    made = [bound.value for bound in here if bound.name == deleted.name]
    if made and all(each.text.rpartition(".")[2] in api("gives-bytes") for each in made):
        return  # and one of bytes or text is a copy
    gone = {
        use.name
        for use in facts.local_uses
        if use.how == "del" and use.function == deleted.function
    }
    for bound in here:
        value = bound.value
        sliced = value.kind == "slice" and value.text == deleted.name
        viewed = value.kind == "call" and value.names == (deleted.name,)
        if not (sliced or viewed) or bound.name in gone or bound.at > deleted.at:
            continue
        if not any(b.name == bound.name and bound.at < b.at < call.at for b in here):
            yield bound
