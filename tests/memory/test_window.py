from __future__ import annotations

import torch
from torch import nn

from leakcheck.memory.ledger import LiveBlock
from leakcheck.memory.storages import StorageTrace
from leakcheck.memory.watch import Ledger, live_blocks
from leakcheck.memory.window import GrowthWindow, allocation_stacks, roots_in_python


def train(kept: list[torch.Tensor] | None) -> GrowthWindow:
    with StorageTrace() as device:
        model = nn.Linear(16, 16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with GrowthWindow(device, Ledger(model, optimizer, device)) as window:
            for step in range(12):
                optimizer.zero_grad()
                model(torch.randn(4, 16)).sum().backward()
                optimizer.step()
                if kept is not None:
                    kept.append(torch.zeros(256))
                window.step(step)
    return window


def test_what_a_list_keeps_is_named_with_its_rate():
    memory = train([]).memory

    assert memory is not None
    assert (memory.device, memory.measured) == ("traced", "traced")
    assert memory.unexpected_per_step == 1024
    (grown,) = memory.grown
    assert (grown.category, grown.bytes_per_step) == ("unexplained", 1024)
    assert grown.site.endswith(" train")
    assert grown.site.startswith("test_window.py:")


def test_a_clean_loop_grows_nothing():
    memory = train(None).memory

    assert memory is not None
    assert (memory.unexpected_bytes, memory.unexpected_per_step, memory.grown) == (0, 0, ())


def test_a_window_of_two_steps_tells_nothing():
    with StorageTrace() as device, GrowthWindow(device, Ledger(device=device)) as window:
        window.step(0)
        window.step(1)

    assert window.memory is None


def test_outermost_modules_and_optimizers_are_found():
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    modules, optimizers = roots_in_python()

    assert any(module is model for module in modules)
    assert not any(module is model[0] or module is model[1][0] for module in modules)
    assert any(found is optimizer for found in optimizers)


def test_stacks_are_not_recorded_where_there_is_no_context():
    if torch.cuda.is_initialized():
        return
    with allocation_stacks() as recorded:
        assert recorded is False


def test_a_snapshot_becomes_live_blocks_whatever_its_version():
    frames = [{"filename": "a.cpp", "line": 0, "name": "at::cuda::getNewWorkspace"}]
    segments = [
        {
            "device": 0,
            "address": 4096,
            "total_size": 2 << 20,
            "blocks": [
                {"size": 512, "state": "active_allocated"},
                {"size": 1024, "requested_size": 1000, "state": "active_awaiting_free"},
                {
                    "size": 1024,
                    "requested_size": 900,
                    "state": "active_allocated",
                    "frames": frames,
                },
                {"size": 512, "state": "inactive"},
            ],
        },
        {"device": 1, "address": 0, "total_size": 512, "blocks": []},
    ]

    blocks, reserved = live_blocks(segments, 0)

    assert reserved == 2 << 20
    assert blocks == [
        LiveBlock(4096, 512, 512),
        LiveBlock(4096 + 1536, 1024, 900, workspace=True),
    ]
