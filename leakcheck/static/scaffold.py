"""A new rule folder that works from the start: every claim about it holds before the first edit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from string import Template

from leakcheck.errors import UsageError, WriteError
from leakcheck.static.registry import CODE, SLUG, builtin_rules, rule_folders
from leakcheck.writing import reason_of, replace_file

FIRST_CODE, LAST_CODE = 901, 999  # LK9xx is kept for rules that are being written

RULE = Template('''"""$title: say here in one sentence what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class $name(Rule):
    """A tensor made at every step is appended to a list that is never emptied."""

    code = "$code"
    summary = "a tensor from every step is kept in a list"
    help = "keep only the newest, or a number in its place"

    def check(self, module: Module) -> Iterator[Hit]:
        """Flag `kept.append(torch.zeros(...))` in a loop."""
        for call in module.calls:
            match call:
                case cst.Call(
                    func=cst.Attribute(attr=cst.Name(value="append")),
                    args=[cst.Arg(value=cst.Call(func=made))],
                ) if module.qualified(made) == "torch.zeros" and module.loop_of(call):
                    yield self.hit(call, "every step's tensor stays in the list")
''')
LEAKY = Template('''"""Keeps a tensor from every step in a list."""

import torch


def train(steps: int = 3000) -> int:
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()
        kept.append(torch.zeros(1024))  # leak: $slug
    return len(kept)


if __name__ == "__main__":
    train()
''')
FIXED = '''"""Keeps the newest tensor only."""

import torch


def train(steps: int = 3000) -> int:
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()
        kept = [torch.zeros(1024)]
    return len(kept)


if __name__ == "__main__":
    train()
'''
PAGE = Template("""# $slug ($code)

## What it finds

A tensor that is made at every step and appended to a list which outlives the step.

## Why it leaks

The list refers to each tensor, so none is ever freed.

## Leaky

```python
kept = []
for _ in range(steps):
    kept.append(torch.zeros(1024))
```

## Fixed

```python
for _ in range(steps):
    kept = [torch.zeros(1024)]
```

## How fast it leaks (measured)

4 KiB of tensor a step and about 0.3 KiB for the object; `leakcheck explain $slug --prove` measures.

## When to ignore it

The list is emptied in a place that the rule does not see.

## What it misses

Tensors from anything but `torch.zeros`.
""")


def scaffold(slug: str, rule_set: Path, code: str | None = None) -> Path:
    """Write a new rule's folder and return it.

    Raises UsageError for a slug or code that is malformed or taken.
    """
    if not SLUG.fullmatch(slug):
        raise UsageError(f'"{slug}" is no slug; use lower-case-words')
    code = code or _free_code(rule_set)
    if not CODE.fullmatch(code):
        raise UsageError(f'"{code}" is no code; it must look like LK901')
    if code in _codes(rule_set):
        raise UsageError(f"{code} is taken")
    folder = rule_set / slug
    if folder.exists() or slug in {rule.slug for rule in builtin_rules()}:
        raise UsageError(f"{slug} is there already")
    name = "".join(word.capitalize() for word in slug.split("-"))
    words = {"slug": slug, "code": code, "name": name, "title": slug.replace("-", " ").capitalize()}
    files = {
        "rule.py": RULE.substitute(words),
        "leaky.py": LEAKY.substitute(words),
        "fixed.py": FIXED,
        "README.md": PAGE.substitute(words),
    }
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {reason_of(error)}") from None
    try:
        for file, text in files.items():
            replace_file(folder / file, text)
    except WriteError:
        shutil.rmtree(folder, ignore_errors=True)  # half a rule would stand in the way of the next
        raise
    return folder


def _free_code(rule_set: Path) -> str:
    taken = _codes(rule_set)
    codes = (f"LK{number}" for number in range(FIRST_CODE, LAST_CODE + 1))
    free = next((code for code in codes if code not in taken), None)
    if free is None:
        raise UsageError("every code from LK901 to LK999 is taken; give one with --code")
    return free


def _codes(rule_set: Path) -> set[str]:
    """List the codes that are taken; read from the text, so that a broken rule stands in no way."""
    codes = {rule.code for rule in builtin_rules()}
    for folder in rule_folders(rule_set) if rule_set.is_dir() else ():
        text = (folder / "rule.py").read_text(encoding="utf-8", errors="replace")
        codes.update(re.findall(r'^\s+code(?:\s*:.*)? = "(\w+)"', text, re.MULTILINE))
    return codes
