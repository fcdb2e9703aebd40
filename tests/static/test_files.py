from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.errors import SourceError, UsageError
from leakcheck.static.files import decode, display_path, find_files, read_bytes


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(*names: str, text: str = "") -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(*paths: str, **options) -> list[str]:
    listed = find_files([Path(path) for path in paths or (".",)], **options)
    return [display_path(path) for path in listed.files]


def test_a_folder_gives_its_python_files_and_notebooks():
    write("train.py", "lib/model.py", "gui.pyw", "eda.ipynb", "notes.txt", "data.csv")

    assert found() == ["eda.ipynb", "gui.pyw", "lib/model.py", "train.py"]


def test_folders_that_hold_no_code_of_ones_own_are_not_searched():
    write("a.py", ".venv/b.py", "node_modules/c.py", "x/site-packages/d.py", "__pycache__/e.py")

    assert found() == ["a.py"]


def test_a_file_named_on_the_command_line_is_taken_whatever_it_is_called():
    write("train", "build/gen.py")

    assert found("train", "build/gen.py") == ["build/gen.py", "train"]


def test_a_named_file_that_is_ignored_is_taken_unless_exclusion_is_forced():
    write(".gitignore", text="gen.py\n")
    write("gen.py", "build/b.py", "vendor/c.py", "d.py")
    named = ["gen.py", "build/b.py", "vendor/c.py", "d.py"]

    assert found(*named, exclude=["vendor/"]) == sorted(named)
    assert found(*named, exclude=["vendor/"], force_exclude=True) == ["d.py"]


def test_a_checkout_below_a_folder_called_build_is_checked_all_the_same(tmp_path, monkeypatch):
    project = tmp_path / "build" / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    write("a.py")

    assert found("a.py", force_exclude=True) == ["a.py"]
    assert found() == ["a.py"]


def test_a_file_named_twice_is_checked_once():
    write("a.py")

    assert found("a.py", "./a.py", ".") == ["a.py"]


def test_a_missing_path_is_a_usage_error():
    with pytest.raises(UsageError, match=r"^no such file or folder: nowhere\.py$"):
        found("nowhere.py")


def test_excluded_patterns_are_relative_to_the_settings():
    write("a.py", "gen/b.py", "lib/gen/c.py")

    assert found(exclude=["/gen/"]) == ["a.py", "lib/gen/c.py"]
    assert found("gen", exclude=["/gen/"]) == []


GITIGNORES = {
    ".gitignore": "*.gen.py\n/out/\ncache/\n!keep.gen.py\nlogs/*\n!logs/keep.py\n",
    "lib/.gitignore": "# a comment\nlocal_*.py\n!important.gen.py\n",
    "lib/deep/.gitignore": "*\n!ok.py\n",
}
TREE = [
    "a.py", "a.gen.py", "keep.gen.py", "out/b.py", "lib/out/c.py", "lib/cache/d.py",
    "lib/local_x.py", "lib/important.gen.py", "lib/deep/ok.py", "lib/deep/no.py", "local_y.py",
    "logs/keep.py", "logs/drop.py", "été/ü.py", "with space/x.py",
]  # fmt: skip


def git(*arguments: str) -> str:
    run = subprocess.run(
        ["git", "-c", "core.quotePath=off", *arguments], capture_output=True, text=True, check=True
    )
    return run.stdout


def test_nested_gitignores_give_the_list_that_git_gives():
    write(*TREE)
    for name, text in GITIGNORES.items():
        Path(name).write_text(text)
    git("init", "-q")
    Path(".git/info/exclude").write_text("local_y.py\n")

    listed = git("ls-files", "--others", "--exclude-standard").splitlines()

    assert found() == sorted(name for name in listed if name.endswith(".py"))
    assert len(found()) < len(TREE)


def test_a_gitignore_above_the_searched_folder_counts_within_a_repository():
    write(*TREE)
    for name, text in GITIGNORES.items():
        Path(name).write_text(text)
    git("init", "-q")

    assert found("lib") == [name for name in found() if name.startswith("lib/")]


def test_an_ignored_folder_is_searched_when_it_is_named():
    write("gen/a.py", "gen/deep/b.py", "gen/deep/c.py")
    Path(".gitignore").write_text("/gen\n")
    Path("gen/.gitignore").write_text("c.py\n")
    git("init", "-q")

    assert found() == []
    assert found("gen/deep", "gen/deep/..") == ["gen/a.py", "gen/deep/b.py"]
    assert found("gen/deep", force_exclude=True) == []


def test_gitignores_can_be_left_out_of_it():
    write("a.py", "b.py")
    Path(".gitignore").write_text("b.py\n")

    assert found() == ["a.py"]
    assert found(respect_gitignore=False) == ["a.py", "b.py"]


def test_a_link_to_a_folder_is_not_followed_and_a_link_in_a_circle_does_no_harm():
    write("lib/a.py")
    os.symlink("lib", "again")
    os.symlink("..", "lib/up")

    assert found() == ["lib/a.py"]


def test_a_dangling_link_is_found_and_says_what_is_wrong_when_read():
    os.symlink("nothing.py", "a.py")

    assert found() == ["a.py"]
    with pytest.raises(SourceError, match=r"^is a symbolic link to nothing$"):
        read_bytes(Path("a.py"))


def test_a_pipe_is_not_read():
    os.mkfifo("a.py")

    with pytest.raises(SourceError, match=r"^is not a regular file$"):
        read_bytes(Path("a.py"))


def test_a_huge_file_is_not_read():
    with open("a.py", "wb") as file:
        file.truncate(5 << 30)

    with pytest.raises(SourceError, match=r"^is too large: 5\.0 GiB, and 4\.0 MiB is the most"):
        read_bytes(Path("a.py"))


def test_a_file_without_permission_says_so(monkeypatch):
    write("a.py")

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SourceError, match=r"^cannot be read: permission denied$"):
        read_bytes(Path("a.py"))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"x = 1\r\n", "x = 1\r\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("x = 'é'\n".encode(), "x = 'é'\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"#!/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n",
         "#!/bin/python\n# vim: set fileencoding=cp1252 :\n'€'\n"),
        ("# coding: future_fstrings\n'é'\n".encode(), "# coding: future_fstrings\n'é'\n"),
        (b"", ""),
    ],
)  # fmt: skip
def test_a_file_is_decoded_as_python_decodes_it_and_encoded_back(raw, text):
    source = decode(raw)

    assert source.text == text
    assert source.encode(source.text) == raw


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"x = '\xe9'\n", "is not utf-8: byte 0xe9 at offset 5"),
        (b"x = 1\n" * 9 + b"\xff\n", "is not utf-8: byte 0xff at offset 54"),
        (b"# coding: klingon\n", "unknown encoding: klingon"),
        (b"# coding: rot13\n", "'rot13' is not a text encoding; use codecs.decode() to handle "
                               "arbitrary codecs"),
        (b"\x7fELF\x02\x00\x00torch", "is binary"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is binary"),
        ("x = 1".encode("utf-16"), "is binary"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem: utf-8"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused_with_the_reason(raw, reason):
    with pytest.raises(SourceError) as refused:
        decode(raw)

    assert str(refused.value) == reason


@given(st.binary(max_size=200))
def test_no_bytes_whatever_get_past_with_another_error(raw):
    with contextlib.suppress(SourceError):
        assert isinstance(decode(raw).text, str)


def test_text_that_its_encoding_cannot_hold_is_not_written():
    source = decode(b"# coding: latin-1\n")

    with pytest.raises(SourceError, match=r"^cannot be written as iso-8859-1: "):
        source.encode("x = '€'")


def test_a_link_to_itself_spoils_no_other_file(tmp_path):
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "train.py").write_text("import torch\n")

    found = find_files([tmp_path])

    assert {path.name for path in found.files} == {"loop.py", "train.py"}


def test_a_gitignore_line_that_is_no_pattern_leaves_the_others_in_force():
    Path(".git").mkdir()
    Path(".gitignore").write_text("!\n**[z-a]\nbuilt.py\n")
    for name in ("built.py", "train.py"):
        Path(name).touch()
    assert [path.name for path in find_files([Path()]).files] == ["train.py"]
