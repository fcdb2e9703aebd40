"""What is read of /dev/shm, and what a run says where another process fills it."""

from __future__ import annotations

import os
import sys

import pytest

from leakcheck.runtime.readings import shared_memory

pytestmark = pytest.mark.skipif(
    not os.path.isdir(shared_memory.FOLDER), reason="there is no /dev/shm"
)
PROGRAM = """
import threading
from multiprocessing import shared_memory

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
go, made = threading.Semaphore(0), threading.Semaphore(0)

def work():
    while True:
        go.acquire()
        shared_memory.SharedMemory(create=True, size=4096).close()
        made.release()

threading.Thread(target=work, daemon=True).start()
for step in range(400):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 in (0, 2, 3):
        go.release()
    made.acquire(blocking=step % 5 in (0, 2, 3))  # where the thread makes them
"""


def test_nothing_is_read_where_the_program_can_make_no_block(monkeypatch):
    monkeypatch.delitem(sys.modules, "multiprocessing.shared_memory", raising=False)

    assert shared_memory.read() == {}


def test_a_block_is_counted_until_it_is_unlinked():
    from multiprocessing.shared_memory import SharedMemory

    before = set(os.listdir(shared_memory.FOLDER))
    block = SharedMemory(create=True, size=1 << 20)
    block.close()

    readings = shared_memory.read()

    assert set(readings) == {"shared-memory", "host.shared"}
    assert block.name in set(os.listdir(shared_memory.FOLDER)) - before
    assert readings["shared-memory"] >= 1
    block.unlink()
    assert block.name not in os.listdir(shared_memory.FOLDER)


def test_a_system_without_the_folder_has_no_such_reading(monkeypatch):
    import multiprocessing.shared_memory  # noqa: F401

    monkeypatch.setattr(shared_memory, "FOLDER", "/nowhere")

    assert shared_memory.read() == {}
    assert shared_memory.room_bytes() is None


def test_blocks_that_no_line_makes_leave_a_run_unclear(watched, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)

    report = watched(program)

    assert report["verdict"] == "unclear", report["stderr"]
    assert report["reason"]["code"] == "shared-memory-grows"
    assert [one["verdict"] for one in report["trends"] if one["resource"] == "shared-memory"] == [
        "unclear"
    ]
