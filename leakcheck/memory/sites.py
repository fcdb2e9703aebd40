"""Where an allocation was made: the innermost frame of the user's code, as "train.py:41 step"."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

_FOREIGN: Final = ("/torch/", "\\torch\\", "site-packages", "dist-packages", "/lib/python")


class SiteTable:
    """Gives each place a number; frames are trusted no further than their types."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def index(self, frames: Any) -> int:
        """The number of the place that these frames point at, -1 for none."""
        name = site_of(frames)
        if not name:
            return -1
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def site_of(frames: Any) -> str:
    """The innermost frame in the user's own Python, else the innermost Python frame, else ""."""
    fallback = ""
    for frame in frames if isinstance(frames, (list, tuple)) else ():
        if not isinstance(frame, dict):
            continue
        path = str(frame.get("filename", ""))
        if not path.endswith((".py", ".ipynb")) and not path.startswith("<"):
            continue
        place = f"{PurePath(path).name}:{frame.get('line', 0)} {frame.get('name', '')}".rstrip()
        if is_user_file(path):
            return place
        fallback = fallback or place
    return fallback


def is_user_file(path: str) -> bool:
    """Whether a source file belongs to the user, not to torch, a package or Python itself."""
    return not path.startswith("<frozen") and not any(part in path for part in _FOREIGN)
