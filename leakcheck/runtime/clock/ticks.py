"""Ticks in the loops of the user's own files, put there as the files are loaded.

`if __leakcheck_on__[7]: __leakcheck_tick__(7)` becomes the first statement of loop 7. Lines,
tracebacks and `inspect.getsource` are unchanged, nothing is written to disk, and a loop that is
switched off costs one look into a list (15 ns). Functions that something else compiles (torch.jit,
numba, triton) and the forward pass of modules are left alone; to torch.compile a tick is a
constant. Both names live in the module and in `builtins`, so that code run under other globals
finds them; pickled by value and loaded in another process, where there may be no leakcheck, a tick
does nothing.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

from leakcheck.runtime.guard import is_of_program
from leakcheck.runtime.introspection import frames
from leakcheck.source.tree import own_nodes

SWITCHES, TICK = "__leakcheck_on__", "__leakcheck_tick__"
_COMPILED = re.compile(r"jit|compile|script|kernel|vectorize|numba|taichi|\bti\.|\bwp\.")
_TEXT = re.compile(r"(['\"]).*?\1")  # as of an option `--compile`
_NOT_THE_USERS = re.compile(r"[\\/](site-packages|dist-packages|lib[\\/]python3[^\\/]*)[\\/]")
_MODULE_LOOPS = re.compile(r"fit|train|run|main|loop|epoch|learn|optim|valid|eval|test")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the user's: where it is, and what it goes over (forever, while, range, data).

    One whose body yields is a source of data, whatever it goes over: it runs while the loop that
    asks for its items does.
    """

    path: str
    line: int
    end_line: int
    first_line: int  # of the function around it; 0 in a module
    over: str
    is_source: bool = False


loops: list[Loop] = []
files: set[str] = set()  # whose loops tick
rewrites: list[Callable[[ast.Module, str], None]] = []  # other changes to the user's files, first
names: dict[str, object] = {}  # that such a change makes use of
edited: dict[str, str] = {}  # real path -> the text to load in place of what is in the file
_on: list[bool] = []  # no class of ours: torch 2.4 compiles nothing that reads one


class _Listeners(list[Callable[[int], None]]):
    """Who hears of ticks: one or nobody; what is pickled has nobody."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return tuple, ()


_listeners = _Listeners()


def _made_tick() -> FunctionType:
    """Make the function that a tick calls: no part of any module, so that it pickles by value."""
    listeners = _listeners

    def tick(loop: int) -> None:
        for listener in listeners:
            listener(loop)

    alone = {"__builtins__": builtins, "__name__": TICK}
    made = FunctionType(tick.__code__, alone, "tick", None, tick.__closure__)
    made._dynamo_marked_constant = True  # type: ignore[attr-defined]  # no graph break
    return made


tick = _made_tick()


def listen(listener: Callable[[int], None]) -> None:
    """Send the ticks of every loop to `listener`."""
    _listeners[:] = [listener]
    for loop in range(len(_on)):
        _on[loop] = True


def stop_listening() -> None:
    """Switch every loop off."""
    _listeners.clear()
    for loop in range(len(_on)):
        _on[loop] = False


def switch_off(loop: int) -> None:
    """Stop one loop from ticking."""
    _on[loop] = False


def enclosing(frame: FrameType | None) -> list[int]:
    """Return the loops that are running around `frame`, the innermost first."""
    found: list[int] = []
    for each in frames.outwards(frame):
        code = each.f_code
        inside = [
            number
            for number, loop in enumerate(loops)
            if loop.path == code.co_filename
            and loop.first_line == _first_line(code)
            and loop.line <= (each.f_lineno or 0) <= loop.end_line
        ]
        found.extend(reversed(inside))
    return found


def around_steps(around: Sequence[int]) -> list[int]:
    """Return those of the loops around a place whose iterations may be steps, or hold steps.

    A loop that yields is one only if no other loop runs around it: else that one asks for items.
    """
    return [loop for loop in around if not loops[loop].is_source] or list(around)


def is_own(path: str, folder: Path) -> bool:
    """Say whether a file is the user's: under the project's `folder`, not installed."""
    if _NOT_THE_USERS.search(path) or not frames.is_own(path):
        return False
    return Path(os.path.realpath(path)).is_relative_to(folder)


def is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether something else compiles a function, by its decorators."""
    return any(map(compiles, function.decorator_list))


def compiles(called: ast.expr) -> bool:
    """Say whether a function is one that compiles others: torch.jit, numba, triton."""
    return _COMPILED.search(_TEXT.sub("", ast.unparse(called))) is not None


def compile_with_ticks(source: bytes | str, path: str) -> CodeType:
    """Compile `source`, each loop of it ticking; SyntaxError as compile() raises it."""
    tree = ast.parse(_as_edited(source, path), path)
    files.add(path)
    for rewrite in rewrites:
        rewrite(tree, path)
    code: CodeType = compile(_Ticking(path).visit(tree), path, "exec", dont_inherit=True)
    return code


def _as_edited(source: bytes | str, path: str) -> bytes | str:
    """Return the edited text of a file, if it has one, and show it in tracebacks too."""
    text = edited.get(os.path.realpath(path)) if edited else None
    if text is None:
        return source
    # without a time of its own linecache does not compare it with the file
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    return text


def install(folder: Path) -> None:
    """Load modules under `folder` with ticks from now on."""
    setattr(builtins, SWITCHES, _on)
    setattr(builtins, TICK, tick)
    before = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(before, OwnFiles(folder))


def give_names(namespace: dict[str, object]) -> None:
    """Put the two names into a module's globals, and those that other changes make use of."""
    namespace[SWITCHES] = _on
    namespace[TICK] = tick
    namespace.update(names)


class OwnFiles(MetaPathFinder):
    """Finds what the path finder finds, and loads the user's own source files with ticks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual spec with our loader, or None when the module is not the user's.

        None, too, if it cannot be compiled: the usual loader says so without a frame of ours.
        """
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if name.partition(".")[0] == "torch" or not is_own(spec.origin, self._folder):
            return None  # torch may be built in the checkout that the script is in
        loader = _TickingLoader(name, spec.origin)
        try:
            loader.get_code(name)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OSError) as error:
            if is_of_program(error):
                raise
            return None
        spec.loader = loader
        return spec


class _TickingLoader(SourceFileLoader):
    """Compiles with ticks, and gives the names before the module runs.

    Python leaves its own frames out of the traceback of an import that fails, but only where none
    of ours lies between: so `exec_module` is its own.
    """

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        give_names(module.__dict__)
        return module

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return _compiled_once(self.get_data(path), path)  # never from or into __pycache__


_compiled: dict[str, tuple[bytes, CodeType]] = {}  # by path: a module may be asked for again


def _compiled_once(source: bytes, path: str) -> CodeType:
    known = _compiled.get(path)
    if known is None or known[0] != source:
        known = _compiled[path] = source, compile_with_ticks(source, path)
    return known[1]


class _Ticking(ast.NodeTransformer):
    def __init__(self, path: str) -> None:
        self._path = path
        self._first_line = 0
        self._in_module_class = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self._in_module_class
        self._in_module_class = any(
            ast.unparse(base).endswith(("Module", "Function")) for base in node.bases
        )
        self.generic_visit(node)
        self._in_module_class = outer
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if is_compiled(node):
            return node
        if self._in_module_class and not _MODULE_LOOPS.search(node.name):
            return node
        outer = self._first_line
        self._first_line = min([node.lineno, *(line.lineno for line in node.decorator_list)])
        self.generic_visit(node)
        self._first_line = outer
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.While) -> ast.AST:
        number = len(loops)
        end_line = node.end_lineno or node.lineno
        loops.append(
            Loop(self._path, node.lineno, end_line, self._first_line, _over(node), _yields(node))
        )
        _on.append(bool(_listeners))
        self.generic_visit(node)
        first = ast.parse(f"if {SWITCHES}[{number}]: {TICK}({number})").body[0]
        for part in ast.walk(first):
            ast.copy_location(part, node.body[0])
            if "end_lineno" in part._attributes:
                part.end_lineno = node.body[0].lineno  # type: ignore[attr-defined]
                part.end_col_offset = node.body[0].col_offset  # type: ignore[attr-defined]
        node.body.insert(0, first)
        return node

    visit_AsyncFor = visit_For
    visit_While = visit_For


def _over(node: ast.For | ast.AsyncFor | ast.While) -> str:
    if isinstance(node, ast.While):
        # who asks for items decides how many a generator makes
        endless = isinstance(node.test, ast.Constant) and not _yields(node)
        return "forever" if endless else "while"
    text = ast.unparse(node.iter)
    return "range" if re.match(r"(range|trange|tqdm\.trange)\(", text) else "data"


def _yields(loop: ast.AST) -> bool:
    """Say whether the body of a loop yields, not counting functions that are defined in it."""
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes(loop))


def _first_line(code: CodeType) -> int:
    return 0 if code.co_name == "<module>" else code.co_firstlineno
