"""What the kernel says of a process, in the files of /proc whose rows read `RssAnon:  512 kB`."""

from __future__ import annotations


def rows_of(path: str, *names: bytes) -> tuple[int, ...] | None:
    """Return some rows of such a file in bytes; None where there is no such file, or no such row.

    None, too, of a process that has ended meanwhile, or that is not ours.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
        after = (text.split(b"\n%b:" % name, 1)[1] for name in names)
        return tuple(int(row.split(None, 1)[0]) << 10 for row in after)
    except (OSError, ValueError, IndexError):
        return None
