"""A file that leakcheck writes is replaced whole or stays as it was, whatever fails on the way."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leakcheck.baseline import AcceptedFinding, write_baseline
from leakcheck.errors import WriteError
from leakcheck.writing import Descriptor, _overwrite, replace_file

OLD, LONG = "what was there\n", "x" * 5000
AS_ROOT = os.geteuid() == 0


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Let every longer write fail half-way, as on a full disk: Python ignores SIGXFSZ."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def old(tmp_path) -> Path:
    path = tmp_path / "file.txt"
    path.write_text(OLD)
    return path


def only(folder: Path, *names: str) -> bool:
    return sorted(each.name for each in folder.iterdir()) == sorted(names)


def test_a_file_is_replaced_and_a_new_one_made(old, tmp_path):
    replace_file(old, "new é\n")
    replace_file(tmp_path / "other.bin", b"\0\xff")

    assert old.read_bytes() == "new é\n".encode()
    assert (tmp_path / "other.bin").read_bytes() == b"\0\xff"
    assert only(tmp_path, "file.txt", "other.bin")


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(old, tmp_path):
    message = f"{old}: cannot be written: file too large"

    with largest_file(1000), pytest.raises(WriteError, match=f"^{re.escape(message)}$"):
        replace_file(old, LONG)

    assert old.read_text() == OLD
    assert only(tmp_path, "file.txt")


def test_ctrl_c_in_a_write_leaves_the_old_file_and_nothing_else(old, tmp_path, monkeypatch):
    def interrupted(source: str, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)

    with pytest.raises(KeyboardInterrupt):
        replace_file(old, LONG)

    assert old.read_text() == OLD
    assert only(tmp_path, "file.txt")


def nothing_replaced(source: str, target: str) -> None:
    raise OSError(errno.EBUSY, "a file that is mounted by itself")


@pytest.mark.parametrize("new", ["", "new", LONG])
def test_a_file_that_nothing_can_replace_is_written_over(old, tmp_path, monkeypatch, new):
    monkeypatch.setattr(os, "replace", nothing_replaced)

    replace_file(old, new)

    assert old.read_text() == new
    assert only(tmp_path, "file.txt")


def test_a_file_that_nothing_can_replace_is_whole_when_there_is_no_room(old):
    with largest_file(1000), pytest.raises(OSError, match="File too large"):
        _overwrite(str(old), LONG.encode(), len(OLD))

    assert old.read_text() == OLD


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
def test_the_permissions_of_the_old_file_stay(old, mode):
    old.chmod(mode)

    replace_file(old, "new")

    assert old.stat().st_mode & 0o7777 == mode


def test_a_new_file_has_the_permissions_that_any_new_file_has(tmp_path):
    (tmp_path / "usual").write_text("")

    replace_file(tmp_path / "new", "")

    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(not AS_ROOT, reason="only root may give files away")
def test_the_owner_of_the_old_file_stays(old):
    os.chown(old, 12, 34)

    replace_file(old, "new")

    assert (old.stat().st_uid, old.stat().st_gid) == (12, 34)


@pytest.mark.skipif(AS_ROOT, reason="root may write to everything")
def test_a_file_that_may_only_be_read_is_not_replaced(old):
    old.chmod(0o444)

    with pytest.raises(WriteError, match="cannot be written: permission denied"):
        replace_file(old, "new")

    assert old.read_text() == OLD


def test_links_stay_links_and_what_they_lead_to_is_replaced(old, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to("../file.txt")
    (tmp_path / "to-nothing").symlink_to("made.txt")

    replace_file(tmp_path / "folder" / "link", "new")
    replace_file(tmp_path / "to-nothing", "made")

    assert (tmp_path / "folder" / "link").is_symlink()
    assert old.read_text() == "new"
    assert (tmp_path / "made.txt").read_text() == "made"


@pytest.mark.parametrize("name", ["absent/file.txt", "file.txt/below", ".", "with\0null"])
def test_a_path_that_cannot_be_written_is_told(old, tmp_path, name):
    with pytest.raises(WriteError, match=r"cannot be written: [a-z ]+$"):
        replace_file(f"{tmp_path}/{name}", "new")


def test_devices_and_pipes_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()

    replace_file(tmp_path / "pipe", "through")
    replace_file("/dev/null", "gone")
    reader.join(60)

    assert read == ["through"]
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("named", ["/dev/stdout", "out.txt"])
def test_standard_output_in_a_file_goes_on_behind_what_is_written(tmp_path, named):
    source = (
        "import os; from leakcheck.writing import replace_file; "
        f"replace_file({named!r}, 'written\\n'); os.lseek(1, 0, 2); os.write(1, b'printed\\n')"
    )

    with open(tmp_path / "out.txt", "w") as out:
        subprocess.run([sys.executable, "-c", source], stdout=out, cwd=tmp_path, check=True)

    assert (tmp_path / "out.txt").read_text() == "written\nprinted\n"


def test_a_baseline_is_replaced_whole(old):
    with largest_file(100), pytest.raises(WriteError):
        write_baseline(
            old, [AcceptedFinding(f"{number}.py", "r", "0" * 12) for number in range(50)]
        )

    assert old.read_text() == OLD


def test_a_descriptor_goes_on_when_the_first_is_closed(tmp_path):
    with open(tmp_path / "log", "w") as file:
        kept = Descriptor(file.fileno())

    kept.write(b"written")

    assert (tmp_path / "log").read_text() == "written"
    kept.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        kept.write(b"more")


def test_a_descriptor_whose_number_is_anothers_is_left_alone(tmp_path):
    with open(tmp_path / "log", "w") as file:
        kept = Descriptor(file.fileno())
    theirs = os.open(tmp_path / "theirs", os.O_WRONLY | os.O_CREAT)
    os.dup2(theirs, kept._number)  # as a program that closes all and opens its own

    with pytest.raises(OSError, match="Bad file descriptor"):
        kept.write(b"written")
    kept.close()

    assert (tmp_path / "theirs").read_bytes() == b""
    os.close(kept._number)  # still open: it was not ours to close
    os.close(theirs)
