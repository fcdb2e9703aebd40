from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.errors import SourceError
from leakcheck.model import Edit, Evidence, Finding, Fix, Location
from leakcheck.static.notebook import MARKER, in_cells, python_of, read_notebook


def cell(source: str | list[str], kind: str = "code") -> dict[str, object]:
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **extra}


def raw(*cells: dict[str, object], indent: int | None = 1, **metadata: object) -> bytes:
    document = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, indent=indent, ensure_ascii=False) + "\n").encode()


def module(*sources: str) -> str:
    return python_of(read_notebook(raw(*map(cell, sources))).text)


def test_code_cells_are_joined_and_others_left_out():
    notebook = read_notebook(raw(cell("# Title", "markdown"), cell(["x = 1\n", "y = 2"]), cell("")))

    assert notebook.text == f"{MARKER}2\nx = 1\ny = 2\n{MARKER}3\n\n"


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if x:\n    !ls -l\n    y = 1", "if x:\n    pass\n    y = 1"),
        ("files = !ls *.py\nprint(files)", "files = None\nprint(files)"),
        ("t = %timeit -o f()", "t = None"),
        ("!pip install a \\\n    b c\nx = 1", "pass\n\nx = 1"),
        ("?torch\ntorch.nn?\ntorch.nn??", "pass\npass\npass"),
        ("%%time\nx = 1", "pass\nx = 1"),
        ("%%bash\nfor x in *; do\n echo $x\ndone", "\n\n\n"),
        ("%%writefile a.py\nx = 1", "\n"),
        ("x = (7\n     % 3)", "x = (7\n     % 3)"),
        ("text = '''\n%d items\n!\n'''\n%time f()", "text = '''\n%d items\n!\n'''\npass"),
        ("await f()", "await f()"),
        ("plt.plot(x);", "plt.plot(x);"),
        ("%time x\r\ny = 2\r\n", "pass\r\ny = 2\r\n"),
    ],
)
def test_what_only_ipython_understands_is_blanked_line_by_line(source, python):
    assert module(source) == f"{MARKER}1\n{python}\n"


def test_a_cell_that_is_not_python_is_named():
    with pytest.raises(SourceError, match=r"^cell 2, line 3: .*syntax"):
        module("x = 1", "y = 2\n%time y\nthis is no python")


@pytest.mark.parametrize("metadata", [
    {"kernelspec": {"language": "julia"}}, {"language_info": {"name": "R"}}
])  # fmt: skip
def test_a_notebook_in_another_language_has_no_code(metadata):
    assert read_notebook(raw(cell("x <- 1"), **metadata)).text == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "is not a notebook: "),
        (b"\xff", "is not a notebook: "),
        (b"[1, 2]", "is not a notebook of format 4"),
        (b'{"worksheets": []}', "is not a notebook of format 4"),
        (b'{"cells": [{"cell_type": "code", "source": 5}]}', "is not a notebook of format 4"),
        (b'{"cells": [1]}', "is not a notebook of format 4"),
        (b"[" * 100_000, "is not a notebook: "),
    ],
)
def test_what_is_no_notebook_is_refused(content, reason):
    with pytest.raises(SourceError) as refused:
        read_notebook(content)

    assert str(refused.value).startswith(reason)


def finding(line: int, *edits: Edit) -> Finding:
    fix = Fix("", edits, "safe") if edits else None
    return Finding("r", "LK999", Location("a.ipynb", line, 3, line, 4), "leaks", fix=fix)


def test_findings_are_placed_in_their_cells():
    text = read_notebook(raw(cell("# x", "markdown"), cell("a\nb"), cell("c"))).text

    placed = in_cells(text, (finding(3, Edit(3, 1, 3, 2, "x")), finding(5)))

    assert [each.location for each in placed] == [
        Location("a.ipynb", 2, 3, 2, 4, 2), Location("a.ipynb", 1, 3, 1, 4, 3)
    ]  # fmt: skip
    assert placed[0].fix == Fix("", (Edit(2, 1, 2, 2, "x"),), "safe")


def test_evidence_is_placed_in_its_cell_and_in_other_files_left_where_it_is():
    text = read_notebook(raw(cell("a\nb"), cell("c"))).text
    here, there = (Evidence(Location(path, 2, 3, 2, 4), "kept", "x") for path in ("a.ipynb", "b"))

    (placed,) = in_cells(text, (replace(finding(5), evidence=(here, there)),))

    assert [each.location for each in placed.evidence] == [
        Location("a.ipynb", 1, 3, 1, 4, 1), Location("b", 2, 3, 2, 4)
    ]  # fmt: skip


def test_a_fix_that_reaches_into_another_cell_is_not_offered():
    text = read_notebook(raw(cell("a\nb"), cell("c"))).text

    placed = in_cells(text, (finding(2, Edit(2, 1, 2, 2, "x"), Edit(5, 1, 5, 2, "x")),))

    assert placed[0].fix is None


@pytest.mark.parametrize("indent", [1, 2, 4, None])
@pytest.mark.parametrize("source", ["a = 1\nb", ["a = 1\n", "b"]])
def test_only_the_sources_change_when_a_notebook_is_written(indent, source):
    before = raw(cell("# é", "markdown"), cell(source), cell("%time c"), indent=indent, kept=[1.5])
    notebook = read_notebook(before)

    after = notebook.encode(notebook.text.replace("a = 1", "a = 1\nz = 2"))

    added = b"a = 1\\nz = 2" if isinstance(source, str) else None
    expected = json.loads(before)
    expected["cells"][1]["source"] = "a = 1\nz = 2\nb" if added else ["a = 1\n", "z = 2\n", "b"]
    assert json.loads(after) == expected
    assert notebook.encode(notebook.text) == before


SOURCE = st.text(alphabet="ab=1 \n%!?'\"()#\\\r\t", max_size=40)


@given(st.lists(SOURCE, max_size=4))
def test_no_source_is_lost_and_lines_keep_their_numbers(sources):
    notebook = read_notebook(raw(*map(cell, sources)))

    assert notebook.encode(notebook.text) == raw(*map(cell, sources))
    try:
        python = python_of(notebook.text)
    except SourceError:
        return
    assert python.count("\n") == notebook.text.count("\n")


def test_escaped_characters_stay_escaped():
    document = {"cells": [cell("x = 1"), cell("caf\u00e9", "markdown")], "metadata": {}}
    written = json.dumps(document, indent=1).encode()
    notebook = read_notebook(written)
    changed = notebook.encode(notebook.text.replace("x = 1", "x = 2"))
    assert changed == written.replace(b"x = 1", b"x = 2")


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_line_ends_and_a_byte_order_mark_stay(newline, bom):
    before = bom + raw(cell("x = 1\ny = 2")).replace(b"\n", newline)
    notebook = read_notebook(before)

    after = notebook.encode(notebook.text.replace("x = 1", "x = 3"))

    assert after == before.replace(b"x = 1", b"x = 3")
