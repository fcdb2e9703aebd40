"""The modules around a checked file, found on disk as its imports lead to them.

A file's findings are thus the same whether it is checked alone or with its whole project. What
was looked for is remembered: findings kept from an earlier run hold only while none of it changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from sys import intern

from leakcheck.errors import SourceError
from leakcheck.projects import has_mark, project_folder
from leakcheck.static.files import decode, display_path, find_files, read_bytes
from leakcheck.static.module import Module
from leakcheck.static.project import Project

# Some 1.2 KB of memory a line. Most of a package's imports lead to the same few modules.
MOST_LINES_KEPT = 25_000
# What the imports of one file lead to, beyond which they stay unknown. Some files of vllm's lead to
# 90,000 lines: 1.1 GB for the project, and eight times its own lines parsed.
MOST_LINES_LED_TO = 20_000
# Of a project's text; transformers has 60 MB of it.
MOST_BYTES_SEARCHED = 64 << 20
EVERY_FILE = "/**"  # behind a folder: all of the project's files, as something to depend on


class Workspace(Project):
    """A project that is read from disk, upward no further than the folder it is in.

    Paths are as findings show them: relative to the working folder inside it, else absolute.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        super().__init__({})
        self._probed: dict[str, set[str]] = defaultdict(set)
        self._digests: dict[str, str | None] = {}
        self._recent: dict[str, int] = {}  # path -> lines, the last used at the end
        self._led_to: dict[str, int] = {}  # path -> lines, by the file that is checked
        self._trees: dict[str, dict[str, bytes]] = {}  # folder -> path -> bytes
        # asked again and again: by many functions of a file, by many files of a project
        self._located: dict[tuple[str, str], str | None] = {}
        self._mentioning: dict[tuple[str, str], tuple[str, ...]] = {}

    def locate(self, name: str, importer: str) -> str | None:
        """Return the path of "pkg.meters" or ".meters", as imported by the file `importer`."""
        key = (name, importer)
        if key not in self._located:
            self._located[key] = self._search(name, importer)
        return self._located[key]

    def _search(self, name: str, importer: str) -> str | None:
        for candidate in _candidates(name, importer):
            self._probed[importer].add(candidate)
            if self.digest(candidate) is not None:
                return candidate
        return None

    def module(self, path: str) -> Module | None:
        """Return the parsed module of a path; None when it is not there or cannot be parsed.

        Nor beyond a number of lines that one file leads to, whether they are parsed already or not.
        """
        if path not in self._led_to and sum(self._led_to.values()) >= MOST_LINES_LED_TO:
            return None
        module = super().module(path)
        self._led_to[path] = 0 if module is None else len(module.lines)
        if module is not None:
            self._recent.pop(path, None)
            self._recent[path] = len(module.lines)
        return module

    def trim(self) -> None:
        """Forget what one file's check made of the modules it imports; drop those unused longest.

        To be called between files only. What is known of a function depends on who called it first;
        a file's findings must not depend on the files that were checked before it.
        """
        self._led_to.clear()
        for module in self._modules.values():
            if module is not None:
                module.forget()
        kept = sum(self._recent.values())
        while kept > MOST_LINES_KEPT:
            path = next(iter(self._recent))
            kept -= self._recent.pop(path)
            dropped = self._modules.pop(path)
            if dropped is not None:
                dropped.release()

    def release(self) -> None:
        """Drop all modules: each refers to its project, and Python would be late to free both."""
        for module in self.parsed:
            module.release()
        self._modules.clear()
        self._recent.clear()

    def dependencies(self, path: str) -> dict[str, str | None]:
        """Return the digests of all files that were looked for on the way from `path`."""
        reached, todo = {path}, [path]
        while todo:
            new = self._probed.get(todo.pop(), set()) - reached
            reached |= new
            todo += new
        return {each: self.digest(each) for each in sorted(reached - {path})}

    def mentioning(self, word: str, importer: str) -> tuple[str, ...]:
        """Return the paths of the project's other modules whose text has the word.

        The answer follows from every file of the project, so what asked depends on them all.
        """
        folder = project_folder(importer)
        if folder is None:
            return ()
        self._probed[importer].add(folder + EVERY_FILE)
        key = (folder, word)
        if key not in self._mentioning:
            needle = word.encode()
            tree = self._tree(folder)
            self._mentioning[key] = tuple(path for path, raw in tree.items() if needle in raw)
        return tuple(path for path in self._mentioning[key] if path != importer)

    def _tree(self, folder: str) -> dict[str, bytes]:
        """Read the Python files below a folder; those past the limit are as good as not there."""
        if folder not in self._trees:
            tree: dict[str, bytes] = {}
            room = MOST_BYTES_SEARCHED
            for file in find_files([Path(folder or ".")]).files:
                with contextlib.suppress(SourceError):
                    raw = read_bytes(file) if file.suffix == ".py" else b""
                    room -= len(raw)
                    if raw and room > 0:
                        tree[display_path(file)] = raw
            self._trees[folder] = tree
        return self._trees[folder]

    def digest(self, path: str) -> str | None:
        """Hash a file's bytes; None when there is no such file."""
        if path.endswith(EVERY_FILE) and path not in self._digests:
            tree = self._tree(path.removesuffix(EVERY_FILE)).items()
            each = (f"{name}\0{digest_of(raw)}" for name, raw in tree)
            self._digests[path] = digest_of("\0".join(each).encode("utf-8", "surrogateescape"))
        if path not in self._digests:
            file = Path(path)
            try:
                raw = read_bytes(file) if os.path.isfile(path) else None
            except SourceError:
                raw = b""
            self._digests[path] = None if raw is None else digest_of(raw)
        return self._digests[path]

    def remember(self, path: str, digest: str) -> None:
        """Take a digest that is known already."""
        self._digests[path] = digest

    def _read(self, path: str) -> str:
        return decode(read_bytes(Path(path))).text


def digest_of(raw: bytes) -> str:
    """Hash bytes for the cache."""
    return hashlib.sha256(raw).hexdigest()


def _candidates(name: str, importer: str) -> Iterator[str]:
    dots = len(name) - len(name.lstrip("."))
    parts = [part for part in name.split(".") if part]
    folder = os.path.dirname(importer)
    if dots:
        for _ in range(dots - 1):
            folder = os.path.dirname(folder)
        yield from _files(folder, parts)
        return
    while True:  # an absolute import may start at any folder of the project above the importer
        yield from _files(folder, parts)
        if not folder or os.path.dirname(folder) == folder or _is_project(folder):
            break
        folder = os.path.dirname(folder)
    # a repository whose root is the package itself: TTS/utils/audio.py is "TTS.utils.audio"
    if parts[:1] == [os.path.basename(os.path.abspath(folder))]:
        yield from _files(folder, parts[1:])


def _files(folder: str, parts: list[str]) -> Iterator[str]:
    base = "/".join([folder, *parts] if folder else parts)
    if parts:
        yield intern(f"{base}.py")  # every file of a package looks for the same few modules
    yield intern(f"{base}/__init__.py" if base else "__init__.py")


def _is_project(folder: str) -> bool:
    return os.path.isabs(folder) and has_mark(folder)
