"""A data set of parsed Python objects: each worker copies the pages it reads."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.source.words import Pattern
from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import datasets
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import walk


class CopyOnWriteDataset(Rule):
    """Lists and dicts parsed from a file, that a data set keeps and indexes."""

    code = "LK503"
    summary = "each loader worker copies the data set's Python objects as it reads them"
    help = "pack the objects into a few arrays or tensors (numpy, torch, pyarrow)"
    default = False
    severity = "info"
    words = ("Dataset", "__getitem__")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each data set's constructor stores."""
        for owner in module.classes:
            if not datasets.is_dataset(module, owner):
                continue
            for store in datasets.kept_by_constructor(module, owner):
                kept = store.attribute
                if _parsed(module, store) and datasets.read_by_workers(module, owner, kept):
                    yield self.hit(store.node, f"each worker will copy `self.{kept}` bit by bit")


def _parsed(module: Module, store: datasets.Kept) -> bool:
    """The value comes from a parser, in place or by way of local names; packed arrays do not."""
    code = module.code(store.value)
    if any(word in code for word in _PACKED):
        return False
    return any(_calls_parser(module, value) for value in datasets.behind(store))


_PACKED = ("np.array", "numpy.array", "np.asarray", "torch.tensor", "torch.as_tensor", "len(")


def _calls_parser(module: Module, value: cst.CSTNode, deep: bool = True) -> bool:
    for node in walk(value):
        if not isinstance(node, cst.Call):
            continue
        if module.qualified(node.func) in shape.api("parsers"):
            return True
        name = shape.last_name(node)
        if name == "readlines" or _PARSER_NAME.search(name):
            return True
        if deep and any(
            f.name.value == name and _calls_parser(module, f.body, deep=False)
            for f in module.functions
        ):
            return True
    return False


# functions of other files that say what they read: `load_json(path)`, `read_annotations(path)`
_PARSER_NAME = Pattern(r"^_?(load|read|parse)_\w*(<formats>)")
