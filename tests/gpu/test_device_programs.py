"""Programs that leak on a device, and programs that do not, under the sentinel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

pytestmark = [pytest.mark.cuda, pytest.mark.slow]

Told = Callable[[str], dict[str, Any]]
WATCHED = """\
import json
import threading
import torch
from torch import nn
import leakcheck

device = "cuda"
kept = []
{setup}
with leakcheck.Sentinel(steps=300) as sentinel:
    for i in range({steps}):
{body}
        sentinel.step()
report = sentinel.report()
trends = {{trend.resource: [trend.verdict, trend.per_step] for trend in report.trends}}
suspects = [
    [s.kind, str(s.holder), [[place.line, place.code] for place in s.locations]]
    for s in report.suspects
]
told = {{
    "verdict": report.verdict,
    "reason": str(report.reason),
    "trends": trends,
    "suspects": suspects,
}}
print("\\n" + json.dumps(told))
"""


def program(setup: str, body: str, steps: int = 500) -> str:
    indented = "\n".join(" " * 8 + line for line in body.splitlines())
    return WATCHED.format(setup=setup, body=indented, steps=steps)


MODEL = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to(device)
optimizer = torch.optim.Adam(model.parameters())
total = 0.0
def train(batch=32):
    optimizer.zero_grad()
    loss = model(torch.randn(batch, 64, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    return loss
"""


def allocated_per_step(told: dict[str, Any]) -> float:
    trend = told["trends"].get("cuda:0.allocated", ["steady", 0.0])
    return float(trend[1])


def test_the_minimal_leak_costs_512_device_bytes_a_step(told: Told):
    answer = told(
        program("val = torch.rand(1, device=device)",
                "val += torch.rand(1, device=device).requires_grad_()")
    )  # fmt: skip

    assert answer["verdict"] == "growing"
    assert allocated_per_step(answer) == pytest.approx(512, rel=0.01)
    assert "graph" in [suspect[0] for suspect in answer["suspects"]]
    lines = [place for s in answer["suspects"] for place in s[2]]
    assert any("val +=" in code for _, code in lines)


def test_the_leak_made_far_away_grows_the_graph_and_no_device_byte(told: Told):
    answer = told(program("val = torch.rand(1, device=device).requires_grad_() * 1", "val += 1"))

    assert answer["verdict"] == "growing"
    assert allocated_per_step(answer) == pytest.approx(0, abs=1)
    assert "graph" in [suspect[0] for suspect in answer["suspects"]]


class Leak(NamedTuple):
    """A program that leaks, and what is to be told of it."""

    setup: str
    body: str
    kind: str
    line: str  # a part of it
    device_bytes: float | None  # a step; None where the library decides
    steps: int = 500


LEAKS = {
    "sum of losses": Leak(MODEL, "total = total + train()", "graph", "total = total", 0),
    "list of losses": Leak(MODEL, "kept.append(train())", "graph", "kept.append", 512),
    "detached outputs": Leak(
        MODEL,
        "train()\nkept.append(torch.zeros(256, device=device))",
        "tensor",
        "kept.append",
        1024,
    ),
    "growing param groups": Leak(
        MODEL,
        "train()\nextra = nn.Parameter(torch.zeros(64, device=device))\n"
        "extra.grad = torch.zeros_like(extra)\noptimizer.add_param_group({'params': [extra]})",
        "tensor",
        "optimizer.add_param_group",
        512,
    ),
    "hook closures": Leak(
        MODEL,
        "model.register_forward_hook(\n"
        "    lambda m, i, o, t=torch.zeros(64, device=device): None\n"
        ")\ntrain()",
        "tensor",
        "register_forward_hook",
        512,
    ),
    "cycle in C++": Leak(
        "",
        "weight = torch.ones(64, device=device, requires_grad=True)\n"
        "(weight * weight).sum().backward(create_graph=True)",
        "tensor",
        "create_graph=True",
        1536,
    ),
    "CUDA graphs captured again": Leak(
        "x = torch.zeros(64, device=device)",
        "graph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph):\n"
        "    y = x + 1\n"
        "kept.append(graph)",
        "object",
        "kept.append",
        None,
        steps=1200,  # what is in them is written in C: it may be a cache that fills
    ),
    "pinned buffers": Leak(
        "", "kept.append(torch.zeros(4096).pin_memory())", "tensor", "kept.append", 0
    ),
    "workspaces of threads": Leak(
        # a thread still in the product at exit is ended there, and the process with it
        "x = torch.randn(64, 64, device=device)\nend = threading.Event()\n"
        "multiplied = threading.Semaphore(0)\n"
        "def work():\n    x @ x\n    multiplied.release()\n    end.wait(60)",
        "kept.append(threading.Thread(target=work, daemon=True))\n"
        "kept[-1].start()\nmultiplied.acquire()",
        "threads",
        "kept[-1].start()",
        None,
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_on_the_device_is_named_with_its_line_and_its_bytes(name: str, told: Told):
    leak = LEAKS[name]

    answer = told(program(leak.setup, leak.body, leak.steps))

    assert answer["verdict"] == "growing", answer["reason"]
    kind, _, places = answer["suspects"][0]
    assert kind == leak.kind
    assert any(leak.line in code for _, code in places)
    if leak.device_bytes is not None:
        assert allocated_per_step(answer) == pytest.approx(leak.device_bytes, rel=0.01, abs=1)


NEIGHBOUR = """
import time, torch
kept = []
for _ in range(200):
    kept.append(torch.zeros(10**6, device="cuda"))
    time.sleep(0.02)
"""

CLEAN = {
    "training": (MODEL, "train()"),
    "detached sum": (MODEL, "total = total + train().item()"),
    "ragged batches": (MODEL, "train(1 + i * 37 % 200)"),
    "a bounded list": (MODEL, "kept.append(train().detach())\ndel kept[:-50]"),
    "mixed precision": (
        MODEL,
        "with torch.autocast('cuda', torch.bfloat16):\n    train()",
    ),
    "emptied cache": (MODEL, "train()\nif i % 50 == 0:\n    torch.cuda.empty_cache()"),
    "one thread a step": (
        MODEL,
        "thread = threading.Thread(target=lambda: torch.zeros(8, device=device))\n"
        "thread.start()\nthread.join()\ntrain()",
    ),
    "a neighbour on the card": (
        MODEL
        + "import shlex, subprocess, sys\n"  # a child of its own would be told of
        + f"work = shlex.join([sys.executable, '-c', {NEIGHBOUR!r}])\n"
        + "subprocess.run(['sh', '-c', work + ' >/dev/null 2>&1 &'], start_new_session=True)",
        "train()",
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_program_on_the_device_does_not_grow(name: str, told: Told):
    setup, body = CLEAN[name]

    answer = told(program(setup, body))

    assert answer["verdict"] == "steady"
    assert answer["suspects"] == []


def test_ragged_shapes_fragment_and_are_not_called_a_leak(told: Told):
    setup = "import random\nrandom.seed(3)\nkept = [None] * 8"
    body = (
        "size = random.randrange(2 << 20, 60 << 20)\n"
        "kept[i % 8] = torch.empty(size, dtype=torch.uint8, device=device)\n"
    )

    answer = told(program(setup, body))

    assert "device" not in [suspect[0] for suspect in answer["suspects"]]
    assert "tensor" not in [suspect[0] for suspect in answer["suspects"]]
