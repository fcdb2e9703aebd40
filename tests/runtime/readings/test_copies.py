"""What a forked child copies by reading is measured, and its own memory is not counted as that."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from leakcheck.report.reasons import said
from leakcheck.runtime.conclusion import _too_much
from leakcheck.runtime.readings.copies import Copied
from leakcheck.runtime.readings.proc import child_pids

pytestmark = pytest.mark.skipif(child_pids() is None, reason="needs /proc")

# a parent that has many objects, and children that do something when they are told to
HEAD = """
import json, os
from leakcheck.runtime.readings.copies import CopyMeter

texts = [f"text {number}" for number in range(400_000)]  # 22 MiB

def child(work):
    ready, go = os.pipe()
    done, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(ready, 1)
        kept = work()
        os.write(told, b"d")
        os.read(ready, 1)
        os._exit(0)
    def run():
        os.write(go, b"g")
        os.read(done, 1)
    return pid, run

def copied_by(*works):
    started = [child(work) for work in works]
    pids = [pid for pid, _ in started]
    meter = CopyMeter()
    meter.read(10, pids)
    for _, run in started:
        run()
    meter.read(20, pids)
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    print(json.dumps([meter.most.processes, meter.most.copied_bytes / (1 << 20)]))
"""


def told(program: str, forked) -> list[Any]:
    done = subprocess.run(
        [forked.python, "-c", HEAD + program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_child_that_reads_objects_copies_their_pages(forked):
    processes, copied_mib = told("copied_by(lambda: [len(each) for each in texts])", forked)

    assert processes == 1
    assert 18 <= copied_mib <= 40


def test_memory_that_a_child_allocates_is_not_copied(forked):
    _, copied_mib = told("copied_by(lambda: bytearray(b'x') * (40 << 20))", forked)

    assert copied_mib < 4


def test_children_beyond_those_that_are_asked_are_taken_to_be_like_them(forked):
    reads = "lambda: [len(each) for each in texts]"
    processes, copied_mib = told(f"copied_by(*[{reads}] * 6)", forked)

    assert processes == 6
    assert 6 * 18 <= copied_mib <= 6 * 40


LOADER = """
import gc, torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset
from leakcheck.runtime.readings import copies

class Texts(Dataset):
    def __init__(self):
        self.items, self.names = list(range(5000)), ["a", "b"]
    def __len__(self):
        return len(self.items)
    def __getitem__(self, index):
        return self.items[index]

class Packed(Texts):
    def __init__(self):
        self.items = torch.arange(5000)

def named(data):
    batches = iter(DataLoader(data, num_workers=1))
    next(batches)
    print(json.dumps(copies._longest_container()))
"""


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Texts()", ["Texts.items", 5000]),
        ("Subset(Texts(), [1, 2])", ["Texts.items", 5000]),
        ("ConcatDataset([Packed(), Subset(Texts(), [1])])", ["Texts.items", 5000]),
        ("Packed()", ["", 0]),
    ],
)
def test_the_longest_container_of_the_data_set_is_named(data, expected, forked):
    assert told(f"{LOADER}\nnamed({data})", forked) == expected


def test_without_a_loader_there_is_no_data_set_to_name(forked):
    named = """
from leakcheck.runtime.readings import copies
print(json.dumps(copies._longest_container()))
"""

    assert told(named, forked) == ["", 0]


def test_of_a_child_that_has_ended_nothing_is_told(forked):
    ended = """
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
meter = CopyMeter()
meter.read(10, [pid])
print(json.dumps([meter.most]))
"""

    assert told(ended, forked) == [None]


def test_that_what_is_still_shared_would_not_fit_leaves_a_run_unclear():
    copied = Copied(4, copied_bytes=1 << 30, shared_bytes=3 << 30)

    assert _too_much(copied, room_bytes=4 << 30) is None
    assert said(_too_much(copied, room_bytes=2 << 30)) == (
        "4 child processes copy what they share with the program, bit by bit: 3.0 GiB more, and "
        "there is room for 2.0 GiB"
    )
