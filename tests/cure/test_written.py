"""The files that a program wrote are hashed, however they were opened."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
import zlib

from leakcheck.cure.written import hashes

PROGRAM = """
import json
import os
from leakcheck.cure.written import Written
os.makedirs("trial", exist_ok=True)
Written("trial")
{code}
"""


def written(folder, code: str) -> dict[str, int]:
    text = PROGRAM.format(code=textwrap.dedent(code))
    began_ns = time.time_ns()
    subprocess.run([sys.executable, "-c", text], cwd=folder, check=True)
    here = os.getcwd()
    os.chdir(folder)
    try:
        return hashes("trial", began_ns)
    finally:
        os.chdir(here)


def test_what_python_opens_to_write_is_found_by_its_bytes(tmp_path):
    code = """
    with open("a.txt", "w") as file: file.write("a")
    """
    assert written(tmp_path, code) == {"a.txt": zlib.crc32(b"a")}


def test_what_is_only_read_or_is_removed_again_is_left_out(tmp_path):
    (tmp_path / "read.txt").write_text("read")
    os.utime(tmp_path / "read.txt", (1, 1))
    code = """
    import os
    open("read.txt").close()
    open("gone.txt", "w").close()
    os.remove("gone.txt")
    """
    assert written(tmp_path, code) == {}


def test_what_cpp_writes_is_found_below_the_working_directory(tmp_path):
    code = """
    import torch
    torch.save([1], "kept.pt")
    """
    assert list(written(tmp_path, code)) == ["kept.pt"]


def test_what_is_outside_of_the_working_directory_has_its_whole_path(tmp_path):
    (tmp_path / "work").mkdir()
    at = tmp_path / "other.txt"

    found = written(tmp_path / "work", f"with open({str(at)!r}, 'w') as file: file.write('b')")

    assert found == {str(at): zlib.crc32(b"b")}


def test_files_of_the_trial_itself_are_apart(tmp_path):
    (tmp_path / "trial").mkdir()

    assert written(tmp_path, "open('trial/losses', 'w').close()") == {}


def test_what_torch_and_the_system_write_elsewhere_is_found_too(tmp_path):
    (tmp_path / "work").mkdir()
    code = f"""
    import os, torch
    from torch import save
    handle = os.open({str(tmp_path / "a.txt")!r}, os.O_WRONLY | os.O_CREAT)
    os.write(handle, b"a")
    os.open({sys.executable!r}, os.O_RDONLY)
    save([1], {str(tmp_path / "b.pt")!r})
    torch.save(obj=[1], f={str(tmp_path / "c.pt")!r})
    """
    found = written(tmp_path / "work", code)

    assert [os.path.basename(path) for path in found] == ["a.txt", "b.pt", "c.pt"]


def test_what_is_moved_has_its_new_name(tmp_path):
    (tmp_path / "work").mkdir()
    code = """
    import os, pathlib, shutil
    open("../x.tmp", "w").close()
    os.replace("../x.tmp", "../x.json")
    pathlib.Path("../y.tmp").write_text("y")
    pathlib.Path("../y.tmp").rename("../y.json")
    os.mkdir("../saving")
    open("../saving/z", "w").close()
    shutil.move("../saving", "../saved")
    """
    found = written(tmp_path / "work", code)

    assert [os.path.relpath(path, tmp_path) for path in found] == ["saved/z", "x.json", "y.json"]


def test_what_is_written_as_the_program_ends_is_there(tmp_path):
    code = """
    import atexit, weakref
    class Kept: pass
    atexit.register(lambda: open("atexit.txt", "w").write("a"))
    kept = Kept()
    weakref.finalize(kept, lambda: open("finalize.txt", "w").write("a"))
    never_closed = open("open.txt", "w")
    never_closed.write("a")
    """
    found = written(tmp_path, code)

    names = ("atexit.txt", "finalize.txt", "open.txt")
    assert found == dict.fromkeys(names, zlib.crc32(b"a"))


def test_paths_may_be_bytes_and_folders_hidden_and_a_database_is_a_file(tmp_path):
    (tmp_path / "work" / ".run").mkdir(parents=True)
    code = """
    import sqlite3
    open(b"../bytes.txt", "w").close()
    open(".run/hidden.txt", "w").close()
    for path in (":memory:", ".run/hidden.db", "../rows.db"):
        rows = sqlite3.connect(path)
        rows.execute("create table rows (a)")
        rows.commit()
    """
    found = written(tmp_path / "work", code)

    assert sorted(map(os.path.basename, found)) == [
        "bytes.txt", "hidden.db", "hidden.txt", "rows.db",
    ]  # fmt: skip


def test_a_file_without_a_name_is_none_of_its_folder(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "other.txt").write_text("")
    code = "import tempfile; tempfile.TemporaryFile(dir='..').write(b'a')"

    assert written(tmp_path / "work", code) == {}
