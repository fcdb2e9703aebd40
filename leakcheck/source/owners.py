"""Of which class is an object, as far as the files say? `page = Page()`, `def look(page: Page)`."""

from __future__ import annotations

import ast
import re

from leakcheck.source.tree import FUNCTIONS, File, Function, ProgramTexts, name_of, parameters

Kinds = frozenset[str] | None  # the names of the classes that it may be of; None: not known
Makers = frozenset[ast.Call] | None  # the calls that it may be made by; None: not known
DEEPEST = 3  # names that stand for each other, or arguments handed on
_CLASS = re.compile(r"_?[A-Z]\w*[a-z]\w*")


def kinds_of(program: ProgramTexts, file: File, node: ast.expr, depth: int = 0) -> Kinds:
    """Return of which classes an object may be, None where the files do not say."""
    if depth > DEEPEST:
        return None
    if (node, depth) not in program.kinds:
        program.kinds[node, depth] = None  # of one that stands for itself nothing is known
        program.kinds[node, depth] = _kinds(program, file, node, depth)
    return program.kinds[node, depth]


def _kinds(program: ProgramTexts, file: File, node: ast.expr, depth: int) -> Kinds:
    match node:
        case ast.Call(func=called):
            made = name_of(called)
            return frozenset({made}) if _CLASS.fullmatch(made) else None
        case ast.Name():
            return _of_variable(program, file, node, depth)
        case ast.Attribute(value=owner, attr=name):
            return _of_attribute(program, file, owner, name, depth)
    return None


def may_be(kinds: Kinds, wanted: tuple[str, ...]) -> bool:
    """Say whether an object of these classes may be one of those `wanted`, () for any."""
    return kinds is None or not wanted or not kinds.isdisjoint(wanted)


def _of_variable(program: ProgramTexts, file: File, node: ast.Name, depth: int) -> Kinds:
    scope = file.scope(node)
    if receiver := receiver_of(file, node):
        return frozenset({receiver})
    if node.id in file.classes or _CLASS.fullmatch(node.id):
        return frozenset({node.id})  # the class itself: `Meter.kept = []`
    if isinstance(scope, FUNCTIONS) and node.id in parameters(scope):
        return _of_parameter(program, file, scope, node.id, depth)
    return _all_of(program, file, _all_given(file, node.id, scope), depth)


def makers_of(program: ProgramTexts, file: File, node: ast.expr, depth: int = 0) -> Makers:
    """Return the calls that an object may be made by, None where the files do not say."""
    if isinstance(node, ast.Call):
        return frozenset({node}) if _makes(node.func) else None
    if not isinstance(node, ast.Name) or depth > DEEPEST:
        return None
    scope = file.scope(node)
    if isinstance(scope, FUNCTIONS) and node.id in parameters(scope):
        if receiver_of(file, node):
            return None
        handed = program.arguments(file, scope, node.id)
        return _made([makers_of(program, other, each, depth + 1) for other, each in handed])
    return makers_of_variable(program, file, node.id, scope, depth)


def makers_of_variable(
    program: ProgramTexts, file: File, name: str, scope: ast.AST, depth: int = 0
) -> Makers:
    """Return the calls that the values of a variable are made by, None for one that is not."""
    given = _all_given(file, name, scope)
    return _made([makers_of(program, file, e, depth + 1) if e else None for e in given])


def _makes(called: ast.expr) -> bool:
    """Say whether a call makes an object: `Meter()`, `type(self)()`, `cls.__new__(cls)`."""
    of_type = isinstance(called, ast.Call) and name_of(called.func) == "type"
    named = name_of(called)
    return of_type or named in ("cls", "__new__") or _CLASS.fullmatch(named) is not None


def is_another(program: ProgramTexts, file: File, node: ast.expr, makers: Makers) -> bool:
    """Say whether an object is surely made elsewhere: another of the same class."""
    found = makers_of(program, file, node) if makers else None
    return bool(makers) and found is not None and found.isdisjoint(makers or ())


def _made(found: list[Makers]) -> Makers:
    known = [each for each in found if each is not None]
    return frozenset[ast.Call]().union(*known) if known and len(known) == len(found) else None


def _all_given(file: File, name: str, scope: ast.AST) -> list[ast.expr | None]:
    """Return all that a variable of a scope is given."""
    stores = [each for each in file.named(name) if isinstance(each, ast.Name)]
    stores = [each for each in stores if isinstance(each.ctx, ast.Store)]
    return [v for each in stores if file.scope(each) is scope for v in _values(file, each)]


def _values(file: File, target: ast.expr) -> list[ast.expr | None]:
    """Return what a target is given, None where it is not one expression."""
    return [*file.given(target)] or [None]


def _all_of(program: ProgramTexts, file: File, given: list[ast.expr | None], depth: int) -> Kinds:
    values = [each for each in given if not (isinstance(each, ast.Constant) and not each.value)]
    return _union([kinds_of(program, file, each, depth + 1) if each else None for each in values])


def _of_parameter(
    program: ProgramTexts, file: File, function: Function, name: str, depth: int
) -> Kinds:
    for each in (*function.args.posonlyargs, *function.args.args):
        if each.arg == name and each.annotation is not None:
            said = name_of(each.annotation)
            return frozenset({said}) if _CLASS.fullmatch(said) else None
    handed = program.arguments(file, function, name)
    return _union([kinds_of(program, other, each, depth + 1) for other, each in handed])


def _of_attribute(
    program: ProgramTexts, file: File, owner: ast.expr, name: str, depth: int
) -> Kinds:
    """Return of which class an attribute is, where the owner's class gives it one: `self.log`."""
    owners = kinds_of(program, file, owner, depth + 1)
    if owners is None or depth >= DEEPEST:
        return None
    kinds: list[Kinds] = []
    for other in program.files(name, [file.path]):
        stores = (each for each in other.named(name) if isinstance(each, ast.Attribute))
        kinds += [
            _all_of(program, other, _values(other, each), depth + 1)
            for each in stores
            if isinstance(each.ctx, ast.Store)
            if kinds_of(program, other, each.value, DEEPEST) in (owners, None)
        ]
    return _union(kinds)


def _union(kinds: list[Kinds]) -> Kinds:
    """Return the classes of several, None if one is not known."""
    known = [each for each in kinds if each is not None]
    return frozenset[str]().union(*known) if known and len(known) == len(kinds) else None


def receiver_of(file: File, node: ast.expr) -> str:
    """Return the name of the class whose method calls its object so: `self`; "" for another."""
    scope = file.scope(node) if isinstance(node, ast.Name) else None
    if not isinstance(scope, FUNCTIONS) or parameters(scope)[:1] != [name_of(node)]:
        return ""
    kind = file.above.get(scope)
    static = any(name_of(each) == "staticmethod" for each in scope.decorator_list)
    return kind.name if isinstance(kind, ast.ClassDef) and not static else ""
