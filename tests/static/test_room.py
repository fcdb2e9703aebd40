"""Loaders behind attributes, and caches that are filled only as far as there is room."""

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

LOADER = """
import itertools
import torch

def prepare(config, handlers):
    handlers.source = MADE
    handlers.turns = itertools.cycle(handlers.source)
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [("make_loader(config)", True), ("torch.utils.data.DataLoader(config)", True), ("[1]", False)],
)
def test_an_attribute_is_a_loader_by_what_is_put_there(made, found):
    slugs = [f.rule for f in check_source(LOADER.replace("MADE", made))]
    assert slugs == (["cycled-loader"] if found else [])


ROOM = """
import torch

class Gallery:
    def __init__(self):
        self.faces = torch.empty(0)

    def take(self, new):
        room = 100 - len(self.faces)
        self.faces = torch.cat((self.faces, NEW.cpu()), dim=0)
"""


def test_what_is_joined_only_as_far_as_there_is_room_does_not_grow_for_ever():
    (rule,) = (each for each in registry.builtin_rules() if each.slug == "untrimmed-cat-cache")

    assert len(check_source(ROOM.replace("NEW", "new"), rules=[rule])) == 1
    assert check_source(ROOM.replace("NEW", "new[:room]"), rules=[rule]) == ()
