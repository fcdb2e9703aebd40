"""How much of what there was does a new value have, and does a line join more to it?"""

from __future__ import annotations

import pytest

from leakcheck.source.left import joins_more, lengthens
from leakcheck.source.tree import ProgramTexts

HELPERS = """\

def extended(kept, new):
    return torch.cat([kept, new])

def newest(kept, new):
    return torch.cat([kept, new])[-100:]
"""


@pytest.mark.parametrize(
    ("line", "joins"),
    [
        ("self.keys = torch.cat([self.keys, key])", True),
        ("self.keys = torch.cat([self.keys, key])[-100:]", False),
        ("self.keys = key if self.keys is None else torch.cat([self.keys, key])", True),
        ("self.keys = torch.cat([self.keys, key]) if self.keys is not None else key", True),
        ("self.keys = key if not self.keys else torch.cat([self.keys, key])", True),
        ("self.keys = torch.cat([self.keys, key]) if self.keys else key", True),
        ("self.keys = key if full else torch.cat([self.keys, key])", False),
        ("self.keys = key if self.keys is not None else torch.cat([self.keys, key])", False),
        ("self.keys = key if self.other is None else torch.cat([self.keys, key])", False),
        ("rows[name] = torch.cat([rows[name], key])", True),
        ("rows[name] = torch.cat([one, key])", False),
        ("kept = np.append(kept, new)", True),
        ("kept = extended(kept, new)", True),
        ("kept = newest(kept, new)", False),
        ("kept = kept", False),
        ("state = cell(now, state)", False),  # another of the same size
        ("kept = torch.cat([a, b])", False),
        ("kept.append(x)", False),
        ("self.seen = self.seen + new", True),
        ("x = x + bias", False),
    ],
)
def test_a_line_that_joins_more_to_what_there_is(line, joins):
    program = ProgramTexts({"train.py": f"{line}\n{HELPERS}"})
    file = program.file("train.py")

    assert joins_more(file.tree.body[0], program, file) is joins


@pytest.mark.parametrize(
    ("line", "lengthens_it"),
    [
        ("kept = kept + [x]", True),
        ("kept = [*kept, x]", True),
        ("kept = {**kept, step: x}", True),
        ("self.kept = self.kept + [x]", True),
        ('self.kept = getattr(self, "kept", []) + [x]', True),
        ('self.kept = getattr(self, "others", []) + [x]', False),
        ("kept = (kept + [x])[-8:]", False),
        ("model = model.eval()", False),
        ("model = model.to(device)", False),
        ("kept = [x]", False),
        ("state = {key: mean(key) for key in state}", False),
        ("kept = [each for each in kept if each.new]", False),
    ],
)
def test_a_line_may_make_a_longer_container_of_the_last_one(line, lengthens_it):
    program = ProgramTexts({"train.py": line})
    file = program.file("train.py")

    assert lengthens(file.tree.body[0], program, file) is lengthens_it
