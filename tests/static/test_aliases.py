"""Which names still hold the entries of a list that is emptied?"""

from __future__ import annotations

import ast
import textwrap

import pytest

from leakcheck.static.queries import aliases


def outlived(body: str) -> list[tuple[str, str]]:
    tree = ast.parse("def f(images, loader):\n" + textwrap.indent(textwrap.dedent(body), "    "))
    return [(holder.id, emptied) for holder, emptied in aliases.outlived(tree.body[0])]


def test_slices_hold_the_entries_of_what_was_cleared():
    assert outlived("parts = [images[i : i + 2] for i in (0, 2)]\nimages.clear()") == [
        ("parts", "images")
    ]


@pytest.mark.parametrize(
    "body",
    [
        "parts = [image.shape for image in images]\nimages.clear()",
        "parts = [images[i : i + 2] for i in (0, 2)]\nimages.clear()\nreturn parts",
        "parts = [images[i : i + 2] for i in (0, 2)]\ndel images",
        "parts = [images[i : i + 2] for i in (0, 2)]\ndel parts\nimages.clear()",
        "images.clear()\nparts = [images[i : i + 2] for i in (0, 2)]",
    ],
)
def test_what_holds_none_of_them_or_is_used_again_is_left_alone(body):
    assert outlived(body) == []


def test_the_list_that_entries_were_taken_from_holds_them():
    body = """
    results = sorted(images)
    kept = []
    for path, samples in zip(loader, results):
        for sample in samples:
            kept.append(sample)
    del kept
    gc.collect()
    """
    assert outlived(body) == [("results", "kept")]
    assert outlived(body.replace("sorted(images)", "loader()")) == []
    assert outlived(body.replace("del kept", "del kept, results")) == []
