"""Watching a device changes nothing on it: no synchronisation, no context, the same numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import leakcheck
from leakcheck.memory.watch import Ledger

pytestmark = pytest.mark.cuda

Told = Callable[[str], dict[str, Any]]
SYNCHRONISING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize")


def synchronisations(loops: ModuleType, *, watched: bool) -> Counter[str]:
    loop = loops.LOOPS["mlp"]
    model, optimizer = loop.make("cuda")
    activities = list(torch.profiler.supported_activities())
    sentinel = leakcheck.Sentinel()
    with torch.profiler.profile(activities=activities) as profile:
        for phase, step, _, _ in loops.training(loop, "cuda", 30, model, optimizer):
            if watched and phase == "after optimizer":
                Ledger(model, optimizer).take(phase, step)
                sentinel.step()
    sentinel.stop()
    return Counter(event.name for event in profile.events() if event.name in SYNCHRONISING)


def test_nothing_is_synchronised(loops: ModuleType):
    bare = synchronisations(loops, watched=False)

    assert synchronisations(loops, watched=True) == bare


def losses(loops: ModuleType, *, watched: bool) -> list[float]:
    loop = loops.LOOPS["transformer-amp"]
    model, optimizer = loop.make("cuda")
    torch.manual_seed(1)
    found = []
    ledger = Ledger(model, optimizer)
    with leakcheck.Sentinel() as sentinel:
        for phase, step, inputs, outputs in loops.training(loop, "cuda", 20, model, optimizer):
            if watched:
                with ledger:
                    ledger.take(phase, step, inputs=inputs, outputs=outputs)
            if phase == "after optimizer":
                found.append(outputs[1].item())
                if watched:
                    sentinel.step()
    return found


def test_the_losses_are_the_same_bit_for_bit(loops: ModuleType):
    assert losses(loops, watched=True) == losses(loops, watched=False)


def test_a_program_on_the_host_gets_no_context(told: Told):
    answer = told(
        "import json, torch, leakcheck\n"
        "with leakcheck.Sentinel() as sentinel:\n"
        "    for _ in range(300):\n"
        "        torch.zeros(10)\n"
        "        sentinel.step()\n"
        "print(json.dumps({'initialised': torch.cuda.is_initialized()}))\n"
    )

    assert answer == {"initialised": False}


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one device only")
def test_an_unused_device_gets_no_context(told: Told):
    answer = told(
        "import json, torch, leakcheck\n"
        "x = torch.zeros(10, device='cuda:0')\n"
        "with leakcheck.Sentinel() as sentinel:\n"
        "    for _ in range(300):\n"
        "        x + 1\n"
        "        sentinel.step()\n"
        "print(json.dumps({'second': torch._C._cuda_hasPrimaryContext(1)}))\n"
    )

    assert answer == {"second": False}


@pytest.mark.parametrize("mode", ["compiled", "graphed"])
def test_compiled_and_captured_steps_run_undisturbed(mode: str, told: Told):
    setup = {
        "compiled": "step = torch.compile(lambda x: (x @ x).relu().sum())",
        "graphed": (
            "graph = torch.cuda.CUDAGraph()\nx @ x\ntorch.cuda.synchronize()\n"
            "with torch.cuda.graph(graph):\n    y = x + 1\n"
            "step = lambda x: (graph.replay(), y.sum())[1]"
        ),
    }[mode]
    program = (
        "import json, torch, leakcheck\n"
        "x = torch.ones(64, 64, device='cuda')\n"
        f"{setup}\n"
        "expected = step(x).item()\n"
        "with leakcheck.Sentinel() as sentinel:\n"
        "    for _ in range(200):\n"
        "        out = step(x)\n"
        "        sentinel.step()\n"
        "verdict = sentinel.report().verdict\n"
        "print(json.dumps({'same': out.item() == expected, 'verdict': verdict}))\n"
    )

    answer = told(program)

    assert answer["same"]
    assert answer["verdict"] != "growing", json.dumps(answer)
