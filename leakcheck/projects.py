"""Which folder a project is in, by the marks of a package or of a checkout."""

from __future__ import annotations

import os

PROJECT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def project_folder(path: str) -> str | None:
    """Return the folder of the project that a file is in; None for a file of its own.

    It is the nearest one with a project's marks, else the outermost of the packages around it.
    """
    folder = os.path.dirname(path)
    package: str | None = None
    while True:
        if has_mark(folder):
            return folder
        if os.path.exists(os.path.join(folder, "__init__.py")):
            package = os.path.dirname(folder) if folder else folder
        if not folder or os.path.dirname(folder) == folder:
            return package
        folder = os.path.dirname(folder)


def own_folder(folder: str) -> str:
    """Return the folder with the user's own files: that of the project around `folder`, or it."""
    return project_folder(os.path.join(folder, "__main__.py")) or folder


def has_mark(folder: str) -> bool:
    """Say whether a project begins at a folder."""
    return any(os.path.exists(os.path.join(folder, mark)) for mark in PROJECT_MARKS)
