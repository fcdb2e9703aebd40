"""How leakcheck writes: a file is replaced whole or stays as it was; a descriptor is ours or left.

A full disk, a limit or Ctrl-C in the middle of a write must not cost the user the file that was
there. And a watched program may close every descriptor, and open its own under their numbers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from leakcheck.errors import WriteError

STREAMS = ("/dev/fd/", "/dev/std", "/proc/")  # name what is open already, perhaps a file
# a folder that only others may write to, a file that is mounted by itself
NOTHING_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
HIGH_DESCRIPTOR = 200  # the program gets the numbers that it gets without leakcheck


def replace_file(path: Path | str, data: bytes | str) -> None:
    """Write a file beside the old one and put it in its place; WriteError, and the old one stays.

    It keeps the old one's permissions and the links that lead to it. What is no regular file, or
    is open as a standard stream, is written to as it is.
    """
    raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        old = _stat(path)
        if old is not None and _written_in_place(path, old):
            Path(path).write_bytes(raw)
        else:
            _replace_or_overwrite(os.path.realpath(path), raw, old)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise WriteError(f"{path}: cannot be written: {reason_of(error)}") from None


def reason_of(error: OSError | ValueError) -> str:
    """Say in lower case what the system says of a file that cannot be written or made."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def _stat(path: Path | str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(path)
    return None


def _written_in_place(path: Path | str, old: os.stat_result) -> bool:
    if not stat.S_ISREG(old.st_mode) or os.path.abspath(path).startswith(STREAMS):
        return True
    return any(_is(number, old) for number in range(3))  # who redirected it reads on from there


def _replace_or_overwrite(target: str, raw: bytes, old: os.stat_result | None) -> None:
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        _replace(target, raw, old)
    except OSError as error:
        if old is None or error.errno not in NOTHING_BESIDE:
            raise
        _overwrite(target, raw, old.st_size)


def _overwrite(target: str, raw: bytes, old_size: int) -> None:
    with open(target, "r+b", buffering=0) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, len(raw) or 1)  # there is room before a byte goes
        except OSError:
            file.truncate(old_size)
            raise
        file.write(raw)
        file.truncate(len(raw))


def _replace(target: str, raw: bytes, old: os.stat_result | None) -> None:
    beside = os.path.join(os.path.dirname(target), f".leakcheck-{secrets.token_hex(6)}")
    try:
        with open(beside, "xb") as file:
            if old is not None:
                _own_like(file.fileno(), old)
            file.write(raw)
        os.replace(beside, target)
    except BaseException:  # also Ctrl-C
        with suppress(OSError):
            os.unlink(beside)
        raise


def _own_like(number: int, old: os.stat_result) -> None:
    with suppress(PermissionError):  # only root may give a file away
        os.fchown(number, old.st_uid, old.st_gid)
    os.fchmod(number, stat.S_IMODE(old.st_mode))


def _is(number: int, known: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(number), known)
    except OSError:
        return False


class Descriptor:
    """A descriptor of our own in a process whose program may close it, or reuse its number."""

    def __init__(self, number: int) -> None:
        """Copy an open descriptor, out of the way of the program's; OSError when it is closed."""
        self._first = number
        try:
            self._number = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
        except OSError:  # a limit below that
            self._number = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
        self._known = os.fstat(self._number)

    def write(self, raw: bytes) -> None:
        """Write everything; OSError when that fails, or when neither number is ours any more."""
        number = self._number if _is(self._number, self._known) else self._first
        if not _is(number, self._known):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        left = memoryview(raw)
        while left:
            left = left[os.write(number, left) :]

    def close(self) -> None:
        """Close the copy, unless its number has become another's."""
        if _is(self._number, self._known):
            with suppress(OSError):
                os.close(self._number)
