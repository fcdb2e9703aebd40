"""A proved edit is written as the file is encoded, into all files of it or into none."""

from __future__ import annotations

import os
import subprocess

import pytest

pytest.importorskip("libcst")
from leakcheck.cli import fix
from leakcheck.errors import UsageError
from leakcheck.experiments import Attempt, Cure, Revision, Trial
from leakcheck.static.files import decode

TEXT = "# gard\xe9\nimport torch\ntotal = 0\ntotal += loss\n"


def revision(path) -> Revision:
    text = decode(path.read_bytes()).text
    edited = text.replace("import torch", "import torch, weakref").replace(
        "= loss", "= loss.item()"
    )
    return Revision(path.name, text, edited)


def tell(*revisions: Revision, **options) -> None:
    trial = Trial(None)
    proved = Attempt("item", "keep the number", revisions, trial, trial, "proved")
    fix._tell(Cure("train.py", trial, (proved,), proved), None, None, **options)


@pytest.mark.parametrize(
    "raw",
    [
        f"# coding: latin-1\n{TEXT}".encode("latin-1"),
        TEXT.encode("utf-8-sig"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.encode().rstrip(b"\n"),
    ],
    ids=["latin-1", "BOM", "CRLF", "no end of the last line"],
)
@pytest.mark.parametrize("name", ["train.py", "tr\xe4in two.py"])
def test_git_takes_the_patch_of_a_file_in_any_encoding(raw, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_bytes(raw)
    made = revision(path)
    (tmp_path / "fix.patch").write_bytes(fix._patch(made))

    subprocess.run(["git", "apply", "fix.patch"], check=True)

    assert path.read_bytes() == decode(raw).encode(made.after)


def test_a_patch_is_of_the_file_that_a_link_leads_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(TEXT)
    os.symlink("src/train.py", "link.py")

    assert fix._patch(revision(tmp_path / "link.py")).startswith(b"--- a/src/train.py\n+++ b/src/")


def test_several_files_are_written_or_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path in paths:
        path.write_text(TEXT)
    made = [revision(path) for path in paths]
    paths[1].write_text("total = 1\n")

    with pytest.raises(UsageError, match=r"^two.py: changed while it was tried; nothing was writ"):
        tell(*made, write=True)

    assert [path.read_text() for path in paths] == [TEXT, "total = 1\n"]
    paths[1].write_text(TEXT)
    tell(*made, write=True)
    assert [path.read_text() for path in paths] == [each.after for each in made]
