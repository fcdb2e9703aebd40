"""A picture of a graph in DOT, by Graphviz's `dot` where that is installed."""

from __future__ import annotations

import shutil
import subprocess

IN_DOT = (".dot", ".gv", "")  # suffixes of files for the graph itself
LONGEST_S = 60


def drawn(dot: str, picture: str) -> bytes:
    """Return a graph as a picture, such as svg or png; OSError says why there is none."""
    program = shutil.which("dot")
    if program is None:
        raise OSError("Graphviz, which draws it, is not installed (there is no `dot`)")
    try:
        done = subprocess.run(
            [program, f"-T{picture}"], input=dot.encode(), capture_output=True, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{program} took longer than {LONGEST_S} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise OSError(f"{program} says: {said or f'exit status {done.returncode}'}")
    return done.stdout
