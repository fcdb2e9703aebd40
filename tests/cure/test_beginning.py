"""What a program does first is read from its text, up to what may do anything else."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.cure.beginning import Imported, SetInEnvironment, beginning


def acts(text: str, **own: str):
    files = {name: [textwrap.dedent(each)] for name, each in own.items()}
    return beginning(textwrap.dedent(text), lambda name: files.get(name, []))


def test_imports_come_in_their_order_up_to_the_first_statement_that_acts():
    text = '''
    """A training."""
    import os, numpy as np
    from torch.utils.data import DataLoader
    LR = 0.1
    def train(): ...
    import torch
    torch.manual_seed(0)
    import scipy
    '''
    assert acts(text) == [Imported(each) for each in ("os", "numpy", "torch.utils.data", "torch")]


def test_the_environment_is_set_before_what_reads_it_is_imported():
    text = """
    import os
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("MKL_NUM_THREADS", "1")
    import torch
    """
    assert acts(text) == [
        Imported("os"),
        SetInEnvironment("OMP_NUM_THREADS", "1", default=False),
        SetInEnvironment("MKL_NUM_THREADS", "1", default=True),
        Imported("torch"),
    ]


def test_a_file_of_the_users_is_read_and_not_loaded():
    assert acts("import model\nimport scipy", model="import torch\nclass Net: ...") == [
        Imported("torch"),
        Imported("scipy"),
    ]


def test_after_a_file_of_the_users_that_acts_nothing_more_is_known():
    assert acts("import setup\nimport torch", setup="import os\nos.umask(0)") == [Imported("os")]


@pytest.mark.parametrize(
    "text",
    [
        "if True:\n    import torch",
        "from . import model\nimport torch",
        "print()\nimport torch",
        "import torch torch",
    ],
)
def test_what_may_not_be_first_is_left_to_the_program(text):
    assert acts(text) == []


def test_what_an_optimizer_imports_as_it_is_made_comes_last():
    makes = "import torch\ndef main():\n    torch.optim.SGD([])\n"

    assert acts(makes) == [Imported("torch"), Imported("torch._dynamo")]
    assert acts(makes.replace("optim.SGD", "sum")) == [Imported("torch")]


@pytest.mark.parametrize("line", ["os.environ['TORCHDYNAMO_DISABLE'] = x", "torch._dynamo.reset()"])
def test_it_does_not_where_the_program_may_change_how_it_is_imported(line):
    makes = f"import torch\ndef main():\n    {line}\n    torch.optim.SGD([])\n"

    assert acts(makes) == [Imported("torch")]
