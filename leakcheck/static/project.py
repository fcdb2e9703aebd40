"""The modules that are checked together, so that a class and its caller are seen as one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from leakcheck.errors import SourceError
from leakcheck.static import syntax
from leakcheck.static.facts.extract import extract
from leakcheck.static.facts.model import FileFacts
from leakcheck.static.module import Module

MOST_REEXPORTS = 4  # a name that is handed on more often than this stays unknown


class Project:
    """Sources by path, parsed when an import leads to them and kept for the next question.

    `Project({path: source})` or `Project.of(paths)`, which reads a file when it is first needed.
    """

    def __init__(self, sources: Mapping[str, str | None]) -> None:
        """Take every file of the project; a source of None is read from its path when needed."""
        self._sources = dict(sources)
        self._modules: dict[str, Module | None] = {}
        self._facts: dict[str, FileFacts | None] = {}
        self._paths: dict[int, str] = {}  # of the facts that are kept

    @classmethod
    def of(cls, paths: list[Path]) -> Project:
        """Make a project of files on disk; nothing is read yet."""
        return cls({str(path): None for path in paths})

    def module(self, path: str) -> Module | None:
        """Return the parsed module of a path; None when it is not there or cannot be parsed."""
        if path not in self._modules:
            self._modules[path] = self._parse(path)
        return self._modules[path]

    def take(self, path: str, source: str) -> Module | None:
        """Take a parsed module out, for a check of the file itself; None if there is none like it.

        What is learnt of it as the file that is checked does not reach it as one that is imported:
        should an import lead back to it meanwhile, it is parsed anew.
        """
        module = self._modules.get(path)
        return self._modules.pop(path) if module is not None and module.source == source else None

    def put_back(self, module: Module) -> None:
        """Keep a module that was taken out, without the answers that its check led to."""
        module.forget()
        if self._modules.setdefault(module.path, module) is not module:
            module.release()

    @property
    def parsed(self) -> tuple[Module, ...]:
        """The modules that were parsed so far and are still known."""
        return tuple(module for module in self._modules.values() if module is not None)

    def find(self, name: str, importer: str) -> Module | None:
        """Resolve "pkg.meters" or ".meters", as imported by the file `importer`."""
        path = self.locate(name, importer)
        return self.module(path) if path else None

    def facts(self, path: str) -> FileFacts | None:
        """Return what the module of a path does; None when it cannot be parsed."""
        if path not in self._facts:
            try:
                outline = syntax.outline(self._read(path))
                self._facts[path] = None if outline is None else extract(outline)
            except (SourceError, RecursionError):
                self._facts[path] = None
            self._paths[id(self._facts[path])] = path
        return self._facts[path]

    def facts_of(self, path: str, source: str) -> FileFacts | None:
        """Return the facts of a path if its text is this one, not one that is yet to be saved."""
        return self.facts(path) if self._text(path) == source else None

    def path_of(self, facts: FileFacts) -> str | None:
        """Return the path of the module whose facts these are."""
        return self._paths.get(id(facts))

    def lines(self, path: str) -> list[str]:
        """Return the lines of a module; none when it is not there."""
        return self._text(path).splitlines()

    def mentioning(self, word: str, importer: str) -> tuple[str, ...]:
        """Return the paths of the other modules whose text has the word."""
        others = (path for path in self._sources if path != importer)
        return tuple(path for path in others if word in self._text(path))

    def home(self, qualified: str, importer: str) -> tuple[str, str] | None:
        """Return the path of the module that defines "pkg.meters.Meter", and the name it has there.

        Re-exports are followed; None when the name leads out of the project.
        """
        where, _, name = qualified.rpartition(".")
        where = where or "." * (len(qualified) - len(qualified.lstrip(".")))
        path = self.locate(where, importer)
        for _ in range(MOST_REEXPORTS):
            facts = self.facts(path) if path else None
            if path is None or facts is None or name in facts.defined:
                break
            where, _, name = facts.imports.get(name, "").rpartition(".")
            path = self.locate(where, path) if where else None
        return (path, name) if path else None

    def text(self, name: str, importer: str) -> str:
        """Return the source of "pkg.meters" or ".meters" unparsed; empty when it is not there."""
        path = self.locate(name, importer)
        return self._text(path) if path else ""

    def _text(self, path: str) -> str:
        try:
            return self._read(path)
        except SourceError:
            return ""

    def _read(self, path: str) -> str:
        """Return a module's source; SourceError when it is not there or cannot be decoded."""
        if path not in self._sources:
            raise SourceError("not a file of the project")
        source = self._sources[path]
        try:
            return Path(path).read_text(encoding="utf-8") if source is None else source
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(str(error)) from None

    def _parse(self, path: str) -> Module | None:
        try:
            source = self._read(path)
            return Module(source, syntax.parse(source), path, self) if self.facts(path) else None
        except (SourceError, RecursionError):
            return None

    def locate(self, name: str, importer: str) -> str | None:
        """Return the path of "pkg.meters" or ".meters", as imported by the file `importer`."""
        dots = len(name) - len(name.lstrip("."))
        parts = [part for part in name.split(".") if part]
        if dots:
            folder = Path(importer).parent
            for _ in range(dots - 1):
                folder = folder.parent
            return self._file(folder, parts)
        # an absolute import may start at any folder above the importer
        for folder in Path(importer).parents:
            if found := self._file(folder, parts):
                return found
        return None

    def _file(self, folder: Path, parts: list[str]) -> str | None:
        base = folder.joinpath(*parts)
        for candidate in (base.with_suffix(".py") if parts else None, base / "__init__.py"):
            if candidate is not None and str(candidate) in self._sources:
                return str(candidate)
        return None

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every path of the project, sorted."""
        return tuple(sorted(self._sources))
