from __future__ import annotations

from leakcheck.source.acts import is_stacked
from leakcheck.source.tree import File


def test_what_is_made_one_tensor_of_may_not_be_numbers():
    source = "self.outs.append(loss)\nmean = torch.stack([x for x in self.outs]).mean()\n"

    assert is_stacked(File("train.py", source), "outs")
    assert not is_stacked(File("train.py", source), "others")
    assert not is_stacked(File("train.py", "kept.append(loss)\nsum(kept)\n"), "kept")
