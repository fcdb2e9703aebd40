"""A file of the program with what is around each node, and all the program's files together."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from leakcheck.source.words import words

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Visits = Mapping[tuple[str, int], int]  # how often each line ran
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LARGEST_LINES = 20_000  # a longer file is not parsed
MOST_FILES = 16  # in which one name is looked for
ADDS = ("append", "appendleft", "add", "extend", "insert", "push", "put", "setdefault", "update")
_IDENTIFIED = (ast.Name, ast.Attribute, *FUNCTIONS, ast.ClassDef)


class File:
    """One file's tree: a single walk notes what is above each node and where each name stands."""

    def __init__(self, path: str, text: str) -> None:
        """Parse a text; one that is no Python, or very long, has an empty tree."""
        self.path = path
        self.tree = parsed(text)
        self.above: dict[ast.AST, ast.AST] = {}
        self._named: dict[str, list[ast.AST]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._lines: dict[int, list[ast.AST]] = {}
        self._bound: dict[ast.AST, tuple[frozenset[str], frozenset[str]]] = {}
        for node in ast.walk(self.tree):
            for part in ast.iter_child_nodes(node):
                self.above[part] = node
            self._lines.setdefault(getattr(node, "lineno", 0), []).append(node)
            if isinstance(node, _IDENTIFIED):
                self._named.setdefault(_identifier(node), []).append(node)
            elif isinstance(node, ast.Call):
                self._calls.setdefault(name_of(node.func), []).append(node)

    def named(self, name: str) -> list[ast.AST]:
        """Return the variables, attributes, functions and classes of a name."""
        return self._named.get(name, [])

    def loads(self, name: str) -> list[ast.expr]:
        """Return where variables and attributes of a name are read."""
        nodes = (node for node in self.named(name) if isinstance(node, (ast.Name, ast.Attribute)))
        return [node for node in nodes if isinstance(node.ctx, ast.Load)]

    def given(self, target: ast.AST) -> list[ast.expr]:
        """Return the values that an assignment gives to a target, none of another node."""
        above = self.above.get(target, self.tree)
        outer = self.above.get(above, self.tree) if isinstance(above, ast.Tuple) else above
        return [value for each, value in pairs_of(outer) if each is target]

    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of what has a name, of whichever object."""
        return self._calls.get(name, [])

    def functions(self, name: str) -> list[Function]:
        """Return the functions and methods of a name."""
        return [node for node in self.named(name) if isinstance(node, FUNCTIONS)]

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes by their names."""
        nodes = (node for named in self._named.values() for node in named)
        return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name stands for: {"np": "numpy", "buf": "state.buf"}."""
        found: dict[str, str] = {}
        for node in self.above:
            match node:
                case ast.Import(names=names):
                    found |= {each.asname or each.name.split(".")[0]: each.name for each in names}
                case ast.ImportFrom(module=module, names=names):
                    found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
        return found

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what is around a node, the nearest first."""
        above = self.above.get(node)
        while above is not None:
            yield above
            above = self.above.get(above)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node is in, or is."""
        return next(each for each in (node, *self.around(node)) if isinstance(each, ast.stmt))

    def function(self, node: ast.AST) -> Function | None:
        """Return the function that a node is in, None in the module's or a class's own body."""
        return next((each for each in self.around(node) if isinstance(each, FUNCTIONS)), None)

    def is_in_constructor(self, node: ast.AST) -> bool:
        """Say whether a node is in a function that runs as an object is made."""
        return getattr(self.function(node), "name", "") in words("names", "constructors")

    def owner(self, function: ast.AST | None) -> ast.ClassDef | None:
        """Return the class that a function is a method of; of one in a method, that method's."""
        if function is None:
            return None
        return next(
            (each for each in self.around(function) if isinstance(each, ast.ClassDef)), None
        )

    def loops(self, node: ast.AST) -> list[Loop]:
        """Return the loops around a node in the same function, the nearest first.

        What a loop goes over is asked for once, before it: it is not in the loop.
        """
        found: list[Loop] = []
        below = node
        for each in self.around(node):
            if isinstance(each, FUNCTIONS):
                break
            if isinstance(each, LOOPS) and not (
                isinstance(each, (ast.For, ast.AsyncFor)) and below is each.iter
            ):
                found.append(each)
            below = each
        return found

    def at(self, line: int) -> Iterator[ast.AST]:
        """Yield the nodes that begin on a line."""
        yield from self._lines.get(line, ())

    def innermost_at(self, line: int) -> ast.AST | None:
        """Return the innermost statement that begins on a line, or else what does.

        `for i in range(9): step(i)` is a loop with a call in it.
        """
        nodes = list(self.at(line))
        statements = [node for node in nodes if isinstance(node, ast.stmt)]
        return next(iter((*statements[-1:], *nodes)), None)

    def scope(self, name: ast.Name | ast.arg) -> ast.AST:
        """Return the function, comprehension, class or module that a variable belongs to."""
        known, direct = name.arg if isinstance(name, ast.arg) else name.id, True
        for each in self.around(name):
            if isinstance(each, ast.ClassDef) and direct and known in self.bound(each)[0]:
                return each
            if isinstance(each, (*FUNCTIONS, ast.Lambda, *COMPREHENSIONS)):
                direct = False  # a class's names are not those of its methods
                own, outer = self.bound(each)
                if known in own:
                    return each
                if known in outer:
                    return self.tree
        return self.tree

    def stores(self, name: ast.Name) -> list[ast.Name]:
        """Return where a variable is set or deleted, by its scope."""
        scope = self.scope(name)
        named = (each for each in self.named(name.id) if isinstance(each, ast.Name))
        stores = (each for each in named if not isinstance(each.ctx, ast.Load))
        return [each for each in stores if self.scope(each) is scope]

    def bound(self, scope: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names that are a scope's own, and those it says are global."""
        if scope not in self._bound:
            self._bound[scope] = _names_in(scope)
        return self._bound[scope]


@dataclass(frozen=True)
class ProgramTexts:
    """The texts of the program's files by path.

    `complete`: no other code of the user's will be loaded; what nothing here calls, nobody does.
    `kinds`: of which classes objects were found to be.
    """

    texts: Mapping[str, str]
    complete: bool = False
    kinds: dict[tuple[ast.AST, int], frozenset[str] | None] = field(
        default_factory=dict, repr=False, compare=False
    )
    _files: dict[str, File] = field(default_factory=dict, repr=False, compare=False)
    _with_word: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def files(self, word: str = "", near: Iterable[str] = ()) -> Iterator[File]:
        """Yield the files that have a word, those that cannot be parsed as empty ones.

        `near`: the paths that are looked at in any case, and first.
        """
        if word not in self._with_word:
            found = (path for path, text in self.texts.items() if word in text)
            self._with_word[word] = tuple(islice(found, MOST_FILES))
        first = [path for path in dict.fromkeys(near) if word in self.texts.get(path, "")]
        yield from map(self.file, dict.fromkeys((*first, *self._with_word[word])))

    def file(self, path: str) -> File:
        """Return one file, an empty one if it is not known."""
        if path not in self._files:
            self._files[path] = File(path, self.texts.get(path, ""))
        return self._files[path]

    def functions(self, name: str, near: File) -> list[tuple[File, Function]]:
        """Return the functions of a name: those of the same file, or else of all."""
        own = [(near, each) for each in near.functions(name)]
        return own or [(f, each) for f in self.files(f"def {name}") for each in f.functions(name)]

    def attribute_stores(self, name: str) -> list[tuple[File, ast.Attribute]]:
        """Return where an attribute of a name is set, of whichever object or module."""
        named = ((file, each) for file in self.files(name) for each in file.named(name))
        attributes = ((file, each) for file, each in named if isinstance(each, ast.Attribute))
        return [(file, each) for file, each in attributes if isinstance(each.ctx, ast.Store)]

    def called_by(self, file: File, call: ast.Call) -> list[tuple[File, Function, int]]:
        """Return the functions that a call may run, with how many of their parameters are bound.

        A class's is its `__init__`; of an unknown object's methods all of that name may be.
        """
        name = name_of(call.func)
        made = self.classes(name) if name else []
        inits = [(other, each, 1) for other, kind in made for each in _inits(kind)]
        if made or not name:
            return inits
        known = self.functions(name, file)
        return [(f, g, int(isinstance(f.above.get(g), ast.ClassDef))) for f, g in known]

    def arguments(self, file: File, function: Function, name: str) -> list[tuple[File, ast.expr]]:
        """Return what the calls of a function, or of its class, hand to a parameter."""
        kind = file.above.get(function)
        method = isinstance(kind, ast.ClassDef)
        called = function.name
        if isinstance(kind, ast.ClassDef) and called == "__init__":
            called = kind.name
        names = parameters(function)
        at = names.index(name) - method if name in names else -1
        return [
            (other, value)
            for other in self.files(called, [file.path])
            for call in other.calls(called)
            for value in _handed(call, name, at)
        ]

    def classes(self, name: str) -> list[tuple[File, ast.ClassDef]]:
        """Return the classes of a name."""
        return [(f, f.classes[name]) for f in self.files(f"class {name}") if name in f.classes]

    def family(self, name: str) -> tuple[str, ...]:
        """Return a class's name and those of its bases, as far as the files say."""
        found: list[str] = []
        waiting = [name]
        while waiting:
            each = waiting.pop(0)
            found.append(each)
            bases = (name_of(base) for _, kind in self.classes(each) for base in kind.bases)
            waiting += [base for base in bases if base not in (*found, *waiting)]
        return tuple(found)


def name_of(node: ast.AST | None) -> str:
    """Return the last part of a name: "rows" of `rows` and of `self.rows`; "" for what is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def name_below(node: ast.expr) -> str:
    """Return the last part of a name, whatever it is indexed by; "" for another expression."""
    node = node.value if isinstance(node, ast.Subscript) else node
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, *_]):
            return f"getattr({ast.unparse(owner)})"  # one of its attributes
    return name_of(node)


def asks_for_main(test: ast.AST) -> bool:
    """Say whether a test asks how the program was begun, which never changes: `__name__ == ...`."""
    return isinstance(test, ast.Compare) and name_of(test.left) == "__name__"


def root_of(node: ast.AST) -> ast.AST:
    """Return what is indexed or asked for an attribute at the very start: `a` of `a.b[0].c`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def is_around(node: ast.AST, line: int) -> bool:
    """Say whether a line is inside a node."""
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in another in their order, without what functions and classes in it have."""
    waiting = [*ast.iter_child_nodes(scope)][::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += [*ast.iter_child_nodes(node)][::-1]


def same(one: ast.AST, other: ast.AST) -> bool:
    """Say whether two expressions are spelt alike, whether read or set."""
    return ast.unparse(one) == ast.unparse(other)


def pairs_of(statement: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment with its value: `a, b = x, y` gives two."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target, value:
                    case ast.Tuple(elts=parts), ast.Tuple(elts=values) if len(parts) == len(values):
                        yield from zip(parts, values, strict=True)
                    case _:
                        yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.NamedExpr(target=target, value=value):
            yield target, value


def _inits(kind: ast.ClassDef) -> list[Function]:
    functions = (each for each in kind.body if isinstance(each, FUNCTIONS))
    return [each for each in functions if each.name == "__init__"]


def _handed(call: ast.Call, name: str, at: int) -> list[ast.expr]:
    named = [each.value for each in call.keywords if each.arg == name]
    return named or (call.args[at : at + 1] if at >= 0 else [])


def parameters(function: Function) -> list[str]:
    """Return the names of a function's positional parameters."""
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def is_property(function: Function) -> bool:
    """Say whether a method is asked for without a call."""
    return any(
        name_of(each) in words("functions", "properties") for each in function.decorator_list
    )


def parsed(text: str) -> ast.Module:
    """Return the tree of a text, an empty one if it is no Python or very long."""
    try:
        if text.count("\n") <= LARGEST_LINES:
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        pass
    return ast.Module([], [])


def _identifier(node: ast.AST) -> str:
    return node.name if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else name_of(node)


def _names_in(scope: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    own, outer, beyond = set[str](), set[str](), set[str]()
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Global(names=names):
                outer.update(names)
            case ast.Nonlocal(names=names):
                beyond.update(names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                own.add(name)
        inner = (*FUNCTIONS, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            own.add(node.name)
        elif not isinstance(node, inner):
            waiting += ast.iter_child_nodes(node)
    return frozenset(own - outer - beyond), frozenset(outer)
