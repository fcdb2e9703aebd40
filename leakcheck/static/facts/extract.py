"""A file's outline in, its facts out: one walk over the standard library's tree.

LibCST would take ten times as long; it is asked only by rules that look at syntax or offer a fix.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

from leakcheck.static.facts.model import (
    Argument,
    AttributeEffect,
    Binding,
    Call,
    ClassFacts,
    EffectRole,
    Expr,
    Fate,
    FileFacts,
    FunctionFacts,
    Handled,
    Span,
)
from leakcheck.static.facts.nodes import (
    bound_pairs,
    called,
    dotted,
    makes_empty,
    names_in,
    never_left,
    sliced,
    span,
    standing,
    unpacked,
)
from leakcheck.static.names import canonical, table
from leakcheck.static.syntax import below, outline_walk

LONGEST_STRING = 60  # of what getattr and setattr may be given
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass
class _Scope:
    """The function, class body or module that the walk is in."""

    function: int
    owner: str
    at_class: bool = False
    loops: int = 0
    outermost: tuple[int, int] = (0, 0)
    guards: int = 0
    managers: tuple[str, ...] = ()
    handled: Handled = ""
    shared: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    returns: list[tuple[Expr, Span]] = field(default_factory=list)
    raises: list[tuple[Expr, Span]] = field(default_factory=list)
    yields: bool = False
    endless: bool = False


def extract(outline: ast.Module) -> FileFacts:
    """Read the facts of a file off its outline."""
    walk = _Walk(outline)
    return FileFacts(
        tuple(cast("list[FunctionFacts]", walk.functions)),
        tuple(walk.classes),
        tuple(cast("list[Call]", walk.calls)),
        tuple(walk.uses),
        tuple(walk.local_uses),
        tuple(walk.bindings),
        walk.imports,
        frozenset(walk.strings | walk.entries if walk.sets_by_name else walk.strings),
        frozenset(walk.late_imports),
    )


class _Walk:
    """One walk over a file, and what it has found."""

    def __init__(self, outline: ast.Module) -> None:
        self.functions: list[FunctionFacts | None] = []
        self.classes: list[ClassFacts] = []
        self.calls: list[Call | None] = []
        self.uses: list[AttributeEffect] = []
        self.local_uses: list[AttributeEffect] = []
        self.bindings: list[Binding] = []
        self.strings: set[str] = set()
        self.entries: set[str] = set()  # the keys of dict displays
        self.sets_by_name = False  # attributes are bound by setattr or through `__dict__`
        self.imports: dict[str, str] = {}
        self.late_imports: set[str] = set()
        self._at = _Scope(-1, "")
        self._methods: list[dict[str, int]] = []
        self._all(node for node in outline.body if isinstance(node, _IMPORTS))
        self._visit(outline)

    def visit_import(self, node: ast.Import) -> None:
        """Take note of what a name stands for."""
        for alias in node.names:
            head = alias.name.partition(".")[0]
            self._import(alias.asname or head, alias.name if alias.asname else head)

    def visit_import_from(self, node: ast.ImportFrom) -> None:
        """Take note of what names stand for; a relative import keeps its dots."""
        module = "." * node.level + (node.module or "")
        joint = "" if module.endswith(".") else "."
        for alias in node.names:
            self._import(alias.asname or alias.name, f"{module}{joint}{alias.name}")

    def _import(self, name: str, source: str) -> None:
        self.imports[name] = source
        if self._at.function >= 0:
            self.late_imports.add(source)

    def _visit(self, node: ast.AST) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self._below(node)

    def _below(self, node: ast.AST) -> None:
        for child in below(node):
            self._visit(child)

    def _all(self, nodes: Iterable[ast.AST | str | None]) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self._visit(node)

    def _known(self, node: ast.AST) -> str:
        """Qualify a name by the imports, else spell it as it stands."""
        spelled = dotted(node.func if isinstance(node, ast.Call) else node)
        return self._qualified(spelled) or spelled

    def _qualified(self, spelled: str) -> str:
        head, dot, tail = spelled.partition(".")
        base = self.imports.get(head)
        return canonical(f"{base}{dot}{tail}") if base else ""

    # ---- definitions

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Walk a function in a scope of its own."""
        listed = node.args
        self._all([*node.decorator_list, *listed.defaults, *listed.kw_defaults])
        index, outer = len(self.functions), self._at
        self.functions.append(None)
        if outer.at_class:
            self._methods[-1].setdefault(node.name, index)
        inner = self._at = _Scope(index, outer.owner)
        self._all(node.body)
        self._at = outer
        outer.reads |= inner.reads
        named = (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)
        self.functions[index] = FunctionFacts(
            node.name,
            outer.owner,
            tuple(each.arg for each in named),
            tuple(self._known(each) for each in node.decorator_list),
            outer.function,
            frozenset(inner.shared) if inner.shared else _NO_NAMES,
            frozenset(inner.reads),
            tuple(value for value, _ in inner.returns),
            tuple(place for _, place in inner.returns),
            tuple(inner.raises),
            inner.yields,
            inner.endless,
            span(node),
        )

    def visit_class(self, node: ast.ClassDef) -> None:
        """Walk a class; what its body binds are its attributes."""
        self._all([*node.decorator_list, *node.bases])
        outer = self._at
        self._at = _Scope(outer.function, node.name, at_class=True)
        self._methods.append({})
        self._all(node.body)
        outer.reads |= self._at.reads
        self._at = outer
        bases = tuple(name for name in (self._known(base) for base in node.bases) if name)
        self.classes.append(ClassFacts(node.name, bases, self._methods.pop(), span(node)))

    # ---- statements

    def visit_loop(self, node: ast.For | ast.AsyncFor) -> None:
        """Walk a loop over something."""
        self._visit(node.iter)
        self._enter_loop(node)
        self._target(node.target, Expr("other", plain=standing(node.iter)))
        self._all(node.body)
        self._leave_loop()
        self._all(node.orelse)

    def _enter_loop(self, node: ast.stmt | ast.expr) -> None:
        if not self._at.loops:
            self._at.outermost = (node.lineno, node.end_lineno or node.lineno)
        self._at.loops += 1

    def _leave_loop(self) -> None:
        self._at.loops -= 1
        if not self._at.loops:
            self._at.outermost = (0, 0)

    def visit_while(self, node: ast.While) -> None:
        """Walk a loop under a condition."""
        self._at.endless |= never_left(node)
        self._enter_loop(node)
        self._visit(node.test)
        self._all(node.body)
        self._leave_loop()
        self._all(node.orelse)

    def visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        """Walk what is made at each turn of a loop within an expression."""
        first, *others = node.generators
        self._visit(first.iter)
        self._enter_loop(node)
        self._all([first.target, *first.ifs, *others])
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        self._all(parts)
        self._leave_loop()

    def visit_if(self, node: ast.If | ast.IfExp) -> None:
        """Walk a test and what it guards."""
        self._visit(node.test)
        self._at.guards += 1
        for branch in (node.body, node.orelse):
            self._all(branch if isinstance(branch, list) else [branch])
        self._at.guards -= 1

    def visit_with(self, node: ast.With | ast.AsyncWith) -> None:
        """Walk the managers, then what stands under them."""
        outer = self._at.managers
        for item in node.items:
            self._value(item.context_expr, "managed", "")
            self._at.managers += (self._known(item.context_expr),)
            if item.optional_vars is not None:
                self._target(item.optional_vars, Expr("other"))
        self._all(node.body)
        self._at.managers = outer

    def visit_try(self, node: Any) -> None:
        """Walk what is tried, and what comes of it."""
        outer = self._at.handled
        parts = ((node.body, "try"), (node.orelse, "try"), (node.finalbody, "finally"))
        handlers = [(handler.body, "except") for handler in node.handlers]
        for body, handled in (*parts[:1], *handlers, *parts[1:]):
            self._at.handled = cast("Handled", handled)
            self._at.guards += handled == "except"
            self._all(body)
            self._at.guards -= handled == "except"
        self._at.handled = outer

    def visit_assign(self, node: ast.Assign) -> None:
        """Pair the targets with the value."""
        only = dotted(node.targets[0]) if len(node.targets) == 1 else ""
        for target, value in bound_pairs(node.targets[0], node.value) if not only else ():
            self._value(value, "bound", dotted(target), unpacked(target))
        if only:
            self._value(node.value, "bound", only)
        for target in node.targets:
            for each, value in bound_pairs(target, node.value):
                self._target(each, self._expr(value))

    def visit_annotated(self, node: ast.AnnAssign) -> None:
        """Take an assignment with a type for one without."""
        if node.value is not None:
            self._value(node.value, "bound", dotted(node.target))
            self._target(node.target, self._expr(node.value))

    def visit_augmented(self, node: ast.AugAssign) -> None:
        """`self.seen += more` adds, `self.count[key] += 1` sets a slot."""
        self._visit(node.value)
        self._target(node.target, self._expr(node.value), augmented=True)

    def visit_named(self, node: ast.NamedExpr) -> None:
        """Walk `(name := value)`."""
        self._value(node.value, "bound", node.target.id)
        self._target(node.target, self._expr(node.value))

    def visit_delete(self, node: ast.Delete) -> None:
        """`del self.seen[key]` takes an entry."""
        for target in node.targets:
            how = "del[]" if isinstance(target, ast.Subscript) else "del"
            while isinstance(target, ast.Subscript):
                self._key(target)
                target = target.value
            self._place(target, "take", how)

    def visit_expression(self, node: ast.Expr) -> None:
        """A call that stands for itself gives its result to nobody."""
        self._value(node.value, "dropped", "")

    def visit_return(self, node: ast.Return) -> None:
        """Note what is returned."""
        if node.value is not None:
            self._value(node.value, "returned", "")
            self._at.returns.append((self._expr(node.value), span(node)))

    def visit_yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        """Note that the function waits for its consumer."""
        self._at.yields = True
        if node.value is not None:
            self._value(node.value, "yielded", "")

    def visit_shared(self, node: ast.Global | ast.Nonlocal) -> None:
        """Note the names that are somebody else's."""
        self._at.shared.update(node.names)

    def visit_raise(self, node: ast.Raise) -> None:
        """Note what is raised."""
        if node.exc is not None:
            self._at.raises.append((self._expr(node.exc), span(node)))
        self._below(node)

    # ---- targets and values

    def _target(self, target: ast.expr, value: Expr, *, augmented: bool = False) -> None:
        match target:
            case ast.Name(id=name):
                self.bindings.append(Binding(name, value, self._at.function, span(target)))
                if self._at.at_class:
                    self.uses.append(self._use(name, "cls", "bind", "", value, target))
            case ast.Attribute():
                self._place(target, "add" if augmented else "bind", "", value)
            case ast.Subscript(value=holder, slice=key):
                self._key(target)
                while isinstance(holder, ast.Subscript):
                    self._key(holder)
                    holder = holder.value
                cuts = isinstance(key, ast.Slice) and not augmented
                how = "+=" if augmented else "[]"
                self._place(holder, "take" if cuts else "slot", how, value, self._expr(key))
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for each in targets:
                    self._target(each, value.part)
            case ast.Starred(value=inner):
                self._target(inner, Expr("other"))

    def _place(
        self,
        node: ast.expr,
        role: EffectRole,
        how: str,
        value: Expr | None = None,
        key: Expr | None = None,
    ) -> None:
        """Note an effect on what the node names."""
        if isinstance(node, ast.Attribute):
            self.uses.append(self._use(node.attr, dotted(node.value), role, how, value, node, key))
            self._visit(node.value)
            return
        if isinstance(node, ast.Name) and role in ("add", "slot", "take"):
            self.local_uses.append(self._use(node.id, "", role, how, value, node, key))
        self._visit(node)

    def _use(
        self,
        name: str,
        holder: str,
        role: EffectRole,
        how: str,
        value: Expr | None,
        node: ast.expr,
        key: Expr | None = None,
    ) -> AttributeEffect:
        at = self._at
        guarded = at.guards > 0
        return AttributeEffect(
            name, holder, role, how, key, value, at.function, at.loops, guarded, span(node)
        )

    def _value(self, node: ast.expr, fate: Fate, bound: str, parts: tuple[str, ...] = ()) -> None:
        """Walk an expression whose value goes somewhere."""
        match node:
            case ast.Call():
                self.visit_call(node, fate, bound, parts)
            case ast.Await(value=inner):  # what is awaited is used, but the result of a call
                awaited = fate if isinstance(inner, ast.Call) or fate != "dropped" else "used"
                self._value(inner, awaited, bound, parts)
            case ast.Attribute():
                self._place(node, _ROLE_OF_FATE.get(fate, "read"), fate)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._value(element, fate if fate != "dropped" else "used", "")
            case _:
                self._visit(node)

    def visit_call(
        self, node: ast.Call, fate: Fate = "used", bound: str = "", parts: tuple[str, ...] = ()
    ) -> None:
        """Note a call, what it is called on, and what it is given."""
        index = len(self.calls)
        self.calls.append(None)
        spelled, receiver = called(node.func), None
        if isinstance(node.func, ast.Attribute):
            self._called_on(node.func, node)
            receiver = self._expr(node.func.value)
            spelled = spelled or f".{node.func.attr}"
        else:
            self._visit(node.func)
        given = [
            Argument("*" if isinstance(a, ast.Starred) else "", self._expr(a)) for a in node.args
        ]
        given += [Argument(k.arg or "**", self._expr(k.value)) for k in node.keywords]
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            reads = spelled in _words("reading-calls")
            self._value(argument, "used" if reads else "argument", spelled)
        at = self._at
        self.calls[index] = Call(
            spelled,
            self._qualified(spelled),
            receiver,
            tuple(given),
            fate,
            bound if fate == "bound" else "",
            at.function,
            at.loops,
            at.outermost,
            at.managers,
            at.handled,
            span(node),
            parts,
        )

    def _called_on(self, method: ast.Attribute, call: ast.Call) -> None:
        """`self.seen.append(x)`, `self.seen[key].append(x)` and `self.seen.pop()`."""
        holder, name = method.value, method.attr
        while isinstance(holder, ast.Subscript):
            self._key(holder)
            holder = holder.value
        role: EffectRole = "read"
        if name in _words("container-grows"):
            role = "slot" if name in ("setdefault", "update") else "add"
        elif name in _words("container-drops"):
            role = "take"
        if isinstance(holder, ast.Attribute) or (role != "read" and isinstance(holder, ast.Name)):
            key, value = (self._expr(call.args[at]) if call.args else None for at in (0, -1))
            self._place(holder, role, name, value, key if name == "setdefault" else None)
        else:
            self._value(holder, "chained", "")

    def visit_comparison(self, node: ast.Compare) -> None:
        """`len(self.seen) > most` measures."""
        for side in (node.left, *node.comparators):
            match side:
                case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute() as measured]):
                    self._place(measured, "measure", "len")
                case ast.Constant(value=str()) if not _asks_for_member(node):
                    pass  # `mode == "train"` compares, and reaches no attribute
                case _:
                    self._visit(side)

    def visit_subscript(self, node: ast.Subscript) -> None:
        """Walk what has entries, and the key."""
        self._visit(node.value)
        self._key(node)

    def _key(self, node: ast.Subscript) -> None:
        """Walk a key: `batch["seen"]` names an entry of a dict, and no attribute of that name."""
        holder, word = dotted(node.value), isinstance(node.slice, ast.Constant)
        if not word or not holder or holder.rpartition(".")[2] == "__dict__":
            self._visit(node.slice)

    def visit_dict(self, node: ast.Dict) -> None:
        """Walk a display; its keys become attributes only where some are set by name."""
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self.entries.add(key.value)
            elif key is not None:
                self._visit(key)
            self._visit(value)

    def visit_name(self, node: ast.Name) -> None:
        """Note which names are read."""
        if isinstance(node.ctx, ast.Load):
            self._at.reads.add(node.id)
            self.sets_by_name |= node.id in _SETS_BY_NAME

    def visit_attribute(self, node: ast.Attribute) -> None:
        """Any other look at an attribute."""
        self.sets_by_name |= node.attr == "__dict__"
        self._place(node, "read", "")

    def visit_constant(self, node: ast.Constant) -> None:
        """Remember what getattr could be given."""
        if isinstance(node.value, str) and len(node.value) <= LONGEST_STRING:
            self.strings.add(node.value)

    def _expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Name() | ast.Attribute():
                return _named(dotted(node))
            case ast.Constant(value=value):
                return _constant(repr(value))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                return _constant(f"-{value!r}")
            case ast.List(elts=[]):
                return Expr("empty", "list")
            case ast.Dict(keys=[]) | ast.Tuple(elts=[]):
                return Expr("empty")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if makes_empty(node, name):
                    return Expr("empty", name)
                names = names_in(node) if name == "partial" else sliced(node)
                known = self._known(node)
                return Expr("call", known or f".{name}", names)
            case ast.Lambda():
                own = {each.arg for each in outline_walk(node.args) if isinstance(each, ast.arg)}
                held = (n for n in names_in(node.body, called_too=True) if n not in own)
                return Expr("lambda", "", tuple(held))
            case ast.Await(value=inner):
                return self._expr(inner)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return Expr("other", "bool", names_in(node))
            case ast.Subscript(value=ast.Attribute() | ast.Name() as holder):
                cut = isinstance(node.slice, ast.Slice)
                return Expr("slice" if cut else "item", dotted(holder), names_in(node))
        return Expr("other", "", names_in(node), standing(node))


@lru_cache(maxsize=10_000)  # the same few names and constants make two thirds of all expressions
def _named(spelled: str) -> Expr:
    return Expr("name", spelled) if spelled else Expr("other")


@lru_cache(maxsize=10_000)
def _constant(text: str) -> Expr:
    return Expr("constant", text)


@cache
def _words(group: str) -> frozenset[str]:
    groups = cast("dict[str, dict[str, list[str]]]", table("resource_api"))["names"]
    return frozenset(groups[group])


def _asks_for_member(node: ast.Compare) -> bool:
    """`"seen" in vars(self)` asks for an attribute."""
    return any(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops)


_NO_NAMES = frozenset[str]()  # made anew, each empty set takes 216 bytes
_SETS_BY_NAME = frozenset({"setattr", "vars"})
_ROLE_OF_FATE: dict[Fate, EffectRole] = {
    "bound": "escape",
    "returned": "escape",
    "yielded": "escape",
    "managed": "escape",
    "argument": "escape",
}
_HANDLERS: dict[type[ast.AST], Callable[[_Walk, Any], None]] = {
    ast.Import: _Walk.visit_import,
    ast.ImportFrom: _Walk.visit_import_from,
    ast.FunctionDef: _Walk.visit_function,
    ast.AsyncFunctionDef: _Walk.visit_function,
    ast.ClassDef: _Walk.visit_class,
    ast.For: _Walk.visit_loop,
    ast.AsyncFor: _Walk.visit_loop,
    ast.While: _Walk.visit_while,
    ast.ListComp: _Walk.visit_comprehension,
    ast.SetComp: _Walk.visit_comprehension,
    ast.DictComp: _Walk.visit_comprehension,
    ast.GeneratorExp: _Walk.visit_comprehension,
    ast.If: _Walk.visit_if,
    ast.IfExp: _Walk.visit_if,
    ast.With: _Walk.visit_with,
    ast.AsyncWith: _Walk.visit_with,
    ast.Try: _Walk.visit_try,
    ast.Assign: _Walk.visit_assign,
    ast.AnnAssign: _Walk.visit_annotated,
    ast.AugAssign: _Walk.visit_augmented,
    ast.NamedExpr: _Walk.visit_named,
    ast.Delete: _Walk.visit_delete,
    ast.Expr: _Walk.visit_expression,
    ast.Return: _Walk.visit_return,
    ast.Yield: _Walk.visit_yield,
    ast.YieldFrom: _Walk.visit_yield,
    ast.Global: _Walk.visit_shared,
    ast.Nonlocal: _Walk.visit_shared,
    ast.Raise: _Walk.visit_raise,
    ast.Call: _Walk.visit_call,
    ast.Compare: _Walk.visit_comparison,
    ast.Subscript: _Walk.visit_subscript,
    ast.Dict: _Walk.visit_dict,
    ast.Name: _Walk.visit_name,
    ast.Attribute: _Walk.visit_attribute,
    ast.Constant: _Walk.visit_constant,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = _Walk.visit_try
