"""What stays as it is while the steps go on: names and attributes that nothing sets any more."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Protocol

from leakcheck.source.numbers import given
from leakcheck.source.tree import FUNCTIONS, File, Function, Loop, ProgramTexts, name_of
from leakcheck.source.words import words

_DEEPEST = 3  # names that are given what others stand for


class Running(Protocol):
    """Knows which loops and functions were running while lines were watched."""

    def lasts(self, file: File, loop: Loop) -> bool:
        """Say whether a loop began before that and had not ended then."""

    def ran(self, file: File, line: int) -> bool:
        """Say whether a line ran while lines were watched."""

    def comes_again(self, file: File, function: Function) -> bool:
        """Say whether a function may be called another time."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Which conditions are the same at each step: they ask for numbers that nothing sets."""

    program: ProgramTexts
    running: Running

    def has(self, file: File, test: ast.expr, depth: int = 0) -> bool:
        """Say whether a condition stays as it is; a list that stays may yet have more elements."""
        match test:
            case ast.Constant():
                return True
            case ast.UnaryOp(operand=inner):
                return self.has(file, inner, depth)
            case ast.BoolOp(values=parts):
                return all(self.has(file, each, depth) for each in parts)
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant()]):
                return self._is_bound_once(file, left)
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return False
            case ast.Compare(left=left, comparators=others):
                return all(self.has(file, each, depth) for each in (left, *others))
            case ast.Name() | ast.Attribute() if self._is_bound_once(file, test):
                values = self._given(file, test)
                return bool(values) and all(self._is_number(f, v, depth) for f, v in values)
        return False

    def _is_number(self, file: File, value: ast.expr, depth: int) -> bool:
        """Say whether a value is a number, a truth or a text, as none of these changes."""
        match value:
            case ast.Constant(value=known):
                return known is not None  # a default, in whose place anything may be given
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Call(func=called):
                return name_of(called) in words("functions", "plain")
            case ast.Name() | ast.Attribute() if depth < _DEEPEST:
                values = self._given(file, value)
                return bool(values) and all(self._is_number(f, v, depth + 1) for f, v in values)
        return False

    def _given(self, file: File, named: ast.Name | ast.Attribute) -> list[tuple[File, ast.expr]]:
        """Return all that a name or attribute is given, one of the settings by what parses them."""
        owner = named.value if isinstance(named, ast.Attribute) else None
        parsed = _settings(file, owner) if isinstance(owner, ast.Name) else []
        return [*given(self.program, file, named), *((file, value) for value in parsed)]

    def _is_bound_once(self, file: File, named: ast.expr) -> bool:
        match named:
            case ast.Name():
                return self._name_stays(file, named)
            case ast.Attribute(value=ast.Name(id="self")):
                return self._attribute_stays(named.attr)
            case ast.Attribute(value=ast.Name() as owner) if _settings(file, owner):
                return not self._is_set_elsewhere(named.attr)
            case ast.Attribute(value=owner):
                return self._attribute_stays(named.attr) and self._is_bound_once(file, owner)
        return False

    def _name_stays(self, file: File, name: ast.Name) -> bool:
        """Say whether a variable is set once for the module, or nowhere in the loop that lasts."""
        scope, stores = file.scope(name), file.stores(name)
        if scope is file.tree:
            beside = [each for each in stores if file.loops(each) or file.function(each)]
            return len(stores) == 1 and not beside and not self._is_set_elsewhere(name.id)
        loops = file.loops(name)
        if not isinstance(scope, FUNCTIONS) or not loops or file.function(name) is not scope:
            return False
        if any(loops[-1] in file.loops(each) for each in stores):
            return False
        return self.running.lasts(file, loops[-1]) and not self.running.comes_again(file, scope)

    def _attribute_stays(self, name: str) -> bool:
        """Say whether only constructors, or the body of a class, set an attribute."""
        named = [(f, each) for f in self.program.files(name) for each in f.named(name)]
        if any(isinstance(each, FUNCTIONS) for _, each in named):
            return False  # a property
        stores = self.program.attribute_stores(name)
        makers = {getattr(f.function(each), "name", "") for f, each in stores}
        fields = (
            isinstance(each, ast.Name) and isinstance(f.scope(each), ast.ClassDef)
            for f, each in named
        )
        made = makers <= words("names", "constructors") and (bool(makers) or any(fields))
        return made and not self._is_set_by_text(name)

    def _is_set_elsewhere(self, name: str) -> bool:
        """Say whether something is set through an object or a module: `config.keep = False`."""
        return bool(self.program.attribute_stores(name)) or self._is_set_by_text(name)

    def _is_set_by_text(self, name: str) -> bool:
        """Say whether an attribute of a name, or of any, is set by `setattr`."""
        calls = (call for file in self.program.files("setattr") for call in file.calls("setattr"))
        texts = (call.args[1] if len(call.args) > 1 else None for call in calls)
        by_text = any(not isinstance(one, ast.Constant) or one.value == name for one in texts)
        return by_text or self._is_updated(name)

    def _is_updated(self, name: str) -> bool:
        """Say whether a namespace gets something by its name: `vars(args).update(keep=False)`."""
        calls = (call for file in self.program.files(name) for call in file.calls("update"))
        return any(each.arg == name for call in calls for each in call.keywords)


def _settings(file: File, owner: ast.Name) -> list[ast.expr]:
    """Return the calls that parse the settings of a run, if a name stands for these alone."""
    values = [v for each in file.named(owner.id) for v in file.given(each)]
    called = [name_of(v.func) if isinstance(v, ast.Call) else "" for v in values]
    return values if values and words("functions", "parses").issuperset(called) else []
