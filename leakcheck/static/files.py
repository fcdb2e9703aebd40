"""Which files are checked, and their bytes and text; nested .gitignore files count, as in git.

Files named on the command line are taken whatever their suffix and whatever ignores them, unless
`force_exclude` says otherwise; folders are searched for Python files and notebooks.
"""

from __future__ import annotations

import os
import re
import stat
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from pathspec import GitIgnoreSpec

from leakcheck.errors import ConfigError, SourceError, UsageError
from leakcheck.model import Unreadable
from leakcheck.units import format_bytes

SUFFIXES = (".py", ".pyw", ".ipynb")
NEVER_SEARCHED = frozenset({
    ".git", ".hg", ".svn", ".eggs", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox",
    ".leakcheck_cache", ".venv", "__pycache__", "__pypackages__", "build", "dist", "node_modules",
    "site-packages", "venv",
})  # fmt: skip
# A hand-written module is far below; at about 0.3 ms a line a larger one would take minutes.
LARGEST_SOURCE_BYTES = 4 << 20
LARGEST_NOTEBOOK_BYTES = 256 << 20  # pictures are stored inside


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files to check, sorted and without repeats, and the folders that could not be listed."""

    files: tuple[Path, ...]
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, and how it was encoded; `text` keeps its line ends and has no BOM."""

    text: str
    encoding: str = "utf-8"

    def encode(self, text: str) -> bytes:
        """Write other text the way this file was written; SourceError where that cannot be."""
        try:
            return text.encode(self.encoding)
        except UnicodeError as error:
            raise SourceError(f"cannot be written as {self.encoding}: {error}") from None


@dataclass
class _Search:
    exclude: GitIgnoreSpec
    root: Path
    respect_gitignore: bool
    unreadable: list[Unreadable] = field(default_factory=list)

    def ignored(self, path: Path, specs: Sequence[tuple[Path, GitIgnoreSpec]], slash: str) -> bool:
        """Ask the nearest .gitignore first: the deepest one with an opinion decides, as in git."""
        if len(self.exclude) and _matches(self.exclude, self.root, path, slash):
            return True
        for folder, spec in reversed(specs):
            verdict = _matches(spec, folder, path, slash)
            if verdict is not None:
                return verdict
        return False

    def walk(self, folder: Path, specs: tuple[tuple[Path, GitIgnoreSpec], ...]) -> Iterator[Path]:
        """Yield the files to check below a folder."""
        if self.respect_gitignore:
            specs = (*specs, *_gitignore_in(folder))
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.unreadable.append(Unreadable(display_path(folder), _reason(error)))
            return
        for entry in entries:
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NEVER_SEARCHED and not self.ignored(path, specs, "/"):
                    yield from self.walk(path, specs)
            elif self._wanted(entry) and not self.ignored(path, specs, ""):
                yield path

    @staticmethod
    def _wanted(entry: os.DirEntry[str]) -> bool:
        if not entry.name.endswith(SUFFIXES):
            return False
        try:
            return not entry.is_dir()
        except OSError:  # a link to itself: reading it says so, for this file alone
            return True


def find_files(
    paths: Sequence[Path],
    *,
    exclude: Sequence[str] = (),
    root: Path | None = None,
    respect_gitignore: bool = True,
    force_exclude: bool = False,
) -> FoundFiles:
    """List the files to check below `paths`; `exclude` holds gitignore patterns relative to `root`.

    Raises UsageError for a path that does not exist, ConfigError for a pattern that is none.
    """
    search = _Search(patterns("exclude", exclude), absolute(root or Path()), respect_gitignore)
    found: dict[Path, None] = {}
    for path in map(absolute, paths):
        if not os.path.lexists(path):
            raise UsageError(f"no such file or folder: {display_path(path)}")
        if force_exclude and _excluded_by_name(search, path):
            continue
        if path.is_dir():
            found.update(dict.fromkeys(search.walk(path, _specs_for(search, path))))
        else:
            found[path] = None
    return FoundFiles(tuple(sorted(found)), tuple(search.unreadable))


def patterns(setting: str, lines: Sequence[str]) -> GitIgnoreSpec:
    """Read the patterns of a setting; ConfigError names the one that is none."""
    for line in lines:
        if not _is_pattern(line):
            raise ConfigError(f'{setting}: "{line}" is not a pattern as in .gitignore')
    return GitIgnoreSpec.from_lines(lines)


def read_bytes(path: Path) -> bytes:
    """Read a file; SourceError says why it cannot be read or is too large to be a source."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceError("is not a regular file")
        most = LARGEST_NOTEBOOK_BYTES if path.suffix == ".ipynb" else LARGEST_SOURCE_BYTES
        if status.st_size > most:
            raise SourceError(too_large(status.st_size, most))
        return path.read_bytes()
    except OSError as error:
        raise SourceError(_reason(error, dangling=path.is_symlink())) from None


def decode(raw: bytes) -> Source:
    """Decode a Python file as Python does: BOM, then the declared encoding (PEP 263), then UTF-8.

    Raises SourceError when it is binary or the encoding does not fit.
    """
    try:
        encoding = _encoding(raw)
        text = raw.decode(encoding)
    except (SyntaxError, LookupError, ValueError) as error:
        raise SourceError("is binary" if b"\0" in raw else _undecodable(raw, error)) from None
    if "\0" in text:
        raise SourceError("is binary")
    return Source(text.removeprefix("\ufeff"), encoding)


def _encoding(raw: bytes) -> str:
    """Return the encoding of a file; future_fstrings is UTF-8 under a name of its own."""
    try:
        return tokenize.detect_encoding(BytesIO(raw).readline)[0]
    except SyntaxError as error:
        if str(error).replace("-", "_").endswith("unknown encoding: future_fstrings"):
            return "utf-8"
        raise


def too_large(size: int, most: int) -> str:
    """Say that a file is larger than what is checked."""
    return f"is too large: {format_bytes(size)}, and {format_bytes(most)} is the most checked"


def absolute(path: Path) -> Path:
    """Make a path absolute and drop `..`, without following symbolic links."""
    return Path(os.path.abspath(path))


def display_path(path: Path) -> str:
    """Write a path as people read it: relative to the working folder when inside it, with `/`."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


def _specs_for(search: _Search, folder: Path) -> tuple[tuple[Path, GitIgnoreSpec], ...]:
    """Read the .gitignore files above a folder that do not ignore the folder itself."""
    above = _gitignores_above(folder) if search.respect_gitignore else ()
    asked = (folder, *folder.parents)
    return tuple(
        (at, spec) for at, spec in above if not any(_matches(spec, at, each, "/") for each in asked)
    )


def _excluded_by_name(search: _Search, path: Path) -> bool:
    inside = path.is_relative_to(search.root)
    if inside and NEVER_SEARCHED.intersection(path.relative_to(search.root).parts):
        return True
    specs = tuple(_gitignores_above(path)) if search.respect_gitignore else ()
    slash = "/" if path.is_dir() else ""
    return search.ignored(path, specs, slash) or any(
        search.ignored(folder, specs, "/") for folder in path.parents
    )


def _matches(spec: GitIgnoreSpec, folder: Path, path: Path, slash: str) -> bool | None:
    relative = os.path.relpath(path, folder)
    if relative == os.curdir or relative.startswith(os.pardir):
        return None
    return spec.check_file(relative.replace(os.sep, "/") + slash).include


def _gitignores_above(path: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    """Read the .gitignore files from the repository's root (else the working folder) down."""
    if (path / ".git").exists():
        return
    parents = list(path.parents)
    roots = [folder for folder in parents if (folder / ".git").exists()] or [Path.cwd()]
    for folder in reversed(parents):
        if folder.is_relative_to(roots[0]):
            yield from _gitignore_in(folder)


def _gitignore_in(folder: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    for name in (".git/info/exclude", ".gitignore"):
        try:
            lines = (folder / name).read_text(errors="replace").removeprefix("\ufeff").splitlines()
        except OSError:
            continue
        spec = GitIgnoreSpec.from_lines(filter(_is_pattern, lines))
        if len(spec):
            yield folder, spec


def _reason(error: OSError, *, dangling: bool = False) -> str:
    if dangling and isinstance(error, FileNotFoundError):
        return "is a symbolic link to nothing"
    return f"cannot be read: {(error.strerror or str(error)).lower()}"


def _undecodable(raw: bytes, error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        where = f"byte 0x{raw[error.start]:02x} at offset {error.start}"
        return f"is not {error.encoding}: {where}"
    if not isinstance(error, SyntaxError) or b"coding" in b"".join(raw.splitlines()[:2]):
        return " ".join(str(error).split()) or type(error).__name__
    try:
        raw.decode()
    except UnicodeDecodeError as cause:
        return _undecodable(raw, cause)
    return str(error)
