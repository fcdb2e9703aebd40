"""Findings kept from the last run, for files that did not change since, nor what they depend on.

One JSON file a source file. The key holds everything the findings follow from: the bytes, the path
shown, the rules and their sources, leakcheck's own analysis; beside it, the digest of every file
that imports led to. Times are not looked at: a checkout changes them, and not the text.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from leakcheck import __version__, source
from leakcheck.errors import WriteError
from leakcheck.model import Finding
from leakcheck.static.workspace import Workspace, digest_of
from leakcheck.writing import replace_file

CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"  # bford.info/cachedir
_FILES = {"CACHEDIR.TAG": CACHEDIR_TAG, ".gitignore": "*\n"}


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What checking one file gave: findings, or the reason why it could not be checked."""

    findings: tuple[Finding, ...] = ()
    reason: str | None = None
    dependencies: dict[str, str | None] = field(default_factory=dict)

    def told(self) -> CheckOutcome:
        """Return what a report needs: with what their files depend on, ray's took 650 MB."""
        return replace(self, dependencies={}) if self.dependencies else self


class _CachedFile(msgspec.Struct, frozen=True):
    key: str
    outcome: CheckOutcome


class Cache:
    """Outcomes by path in a folder; one that cannot be read or written is as good as none."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, made when the first outcome is kept."""
        self._folder = folder / __version__
        self._root = folder
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(_CachedFile)
        self._usable: bool | None = None

    def get(self, path: str, key: str, workspace: Workspace) -> CheckOutcome | None:
        """Return the outcome kept for a path, if all it followed from is as it was."""
        try:
            entry = self._decoder.decode(self._file(path).read_bytes())
        except (OSError, msgspec.MsgspecError, ValueError):
            return None
        if entry.key != key:
            return None
        depends = entry.outcome.dependencies.items()
        fresh = all(workspace.digest(other) == digest for other, digest in depends)
        return entry.outcome if fresh else None

    def put(self, path: str, key: str, outcome: CheckOutcome) -> None:
        """Keep an outcome; the file is replaced in one go, so another run never reads half."""
        if self._usable is None:
            self._usable = self._prepare()
        if not self._usable:
            return
        with contextlib.suppress(WriteError):
            replace_file(self._file(path), self._encoder.encode(_CachedFile(key, outcome)))

    def _file(self, path: str) -> Path:
        return self._folder / f"{digest_of(path.encode('utf-8', 'surrogateescape'))[:32]}.json"

    def _prepare(self) -> bool:
        try:
            marked = self._root if self._is_own() else self._folder
            self._folder.mkdir(parents=True, exist_ok=True)
            for name, text in _FILES.items():
                if not (marked / name).exists():
                    (marked / name).write_text(text)
        except (OSError, ValueError):  # ValueError: a null byte in the name
            return False
        return True

    def _is_own(self) -> bool:
        """Tell a folder for caches from one with other files, which git must not come to ignore."""
        tag = self._root / "CACHEDIR.TAG"
        return tag.exists() or not self._root.exists() or not any(self._root.iterdir())


def rules_digest(slugs: Iterable[str], rule_sets: Iterable[Path]) -> str:
    """Hash what turns bytes into findings: the chosen rules, all rule sources, our analysis."""
    parts = [__version__, sys.version, *sorted(slugs)]
    for folder in (Path(__file__).parent, Path(source.__file__).parent, *rule_sets):
        for file in sorted((*folder.rglob("*.py"), *folder.rglob("*.toml"))):
            parts += [str(file.relative_to(folder)), digest_of(file.read_bytes())]
    return digest_of("\0".join(parts).encode())
