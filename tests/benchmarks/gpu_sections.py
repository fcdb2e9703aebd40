"""What gpu_capture.py records in each section; every function returns data for JSON.

    python tests/benchmarks/gpu_sections.py OUT.json peaks attention

writes sections as one file: on a device, or as a predictor's target, so that both can be compared.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import gpu_rules
import torch
import watched_turns
from gpu_loops import LOOPS, Loop, training
from torch import nn

from leakcheck.memory.watch import Ledger
from leakcheck.memory.window import allocation_stacks
from leakcheck.runtime.readings.devices import DeviceMeter


def origin() -> dict[str, Any]:
    """The device and the versions, so that the data says where it is from."""
    properties = torch.cuda.get_device_properties(0)
    return {
        "device": properties.name,
        "capability": [properties.major, properties.minor],
        "total_bytes": properties.total_memory,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
    }


def counts() -> list[int]:
    """Allocated and reserved bytes now."""
    gc.collect()
    return [torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]


def seeds() -> dict[str, Any]:
    """The printed values of the exact-accounting document, in its own order."""
    told: dict[str, Any] = {"linear": linear(), "timeline": {}}
    told["layers"] = _two_layers()
    small = torch.zeros(800, device="cuda")
    told["rounding"] = [small.nbytes, torch.cuda.memory_allocated()]
    del small  # the timelines explain every byte
    for kind in ("SGD", "Adam"):
        told["timeline"][kind] = _timeline(kind)
    return told


def linear() -> list[list[Any]]:
    """Allocated and reserved bytes of one linear layer, as it is trained and deleted."""
    told: list[list[Any]] = []
    model = nn.Linear(256, 250, device="cuda")
    told.append(["model", *counts()])
    x = torch.randn(1, 256, device="cuda")
    told.append(["input", *counts()])
    y = model(x)
    told.append(["forward", *counts()])
    y.sum().backward()
    told.append(["backward", *counts()])
    del model, x, y
    torch.cuda.empty_cache()
    told.append(["deleted", *counts()])
    return told


def _two_layers() -> dict[str, list[int]]:
    rows = {}
    for mode in ("training", "inference"):
        start = torch.cuda.memory_allocated()
        model = nn.Sequential(nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 200), nn.Sigmoid())
        model = model.cuda()
        x = torch.randn(5, 200, device="cuda")
        with torch.inference_mode() if mode == "inference" else nullcontext():
            y = model(x)
        rows[mode] = [torch.cuda.memory_allocated() - start]
        if mode == "training":
            y.sum().backward()
            rows[mode].append(torch.cuda.memory_allocated() - start)
        del model, x, y
    return rows


def _timeline(kind: str) -> list[list[Any]]:
    loop = Loop(lambda: nn.Linear(256, 250), lambda d: torch.randn(100, 256, device=d), kind)
    model, optimizer = loop.make("cuda")
    rows = []
    with Ledger(model, optimizer) as ledger:
        for phase, step, inputs, outputs in training(loop, "cuda", 4, model, optimizer):
            page = ledger.take(phase, step, inputs=inputs, outputs=outputs)
            rows.append(
                [phase, step, torch.cuda.memory_allocated(), asdict(replace(page, sites=()))]
            )
    return rows


def workspaces() -> dict[str, Any]:
    """Allocated bytes after matmuls from more and more threads, and on more and more streams."""
    a = torch.randn(256, 256, device="cuda")
    told: dict[str, Any] = {"start": counts()[0], "threads": [], "streams": []}

    def multiply() -> None:
        (a @ a).sum().item()

    multiply()
    told["first"] = counts()[0]
    end = threading.Event()
    for _ in range(4):  # a thread that ends hands its cuBLAS handle on, so these stay
        done = threading.Event()
        work = partial(_multiply_and_wait, multiply, done, end)
        threading.Thread(target=work, daemon=True).start()
        done.wait(30)
        told["threads"].append(counts()[0])
    streams = []
    for _ in range(4):
        streams.append(torch.cuda.Stream())
        with torch.cuda.stream(streams[-1]):
            multiply()
        told["streams"].append(counts()[0])
    blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"]]
    told["blocks"] = sorted(
        b.get("requested_size", b["size"]) for b in blocks if "active" in b["state"]
    )
    end.set()
    torch._C._cuda_clearCublasWorkspaces()
    told["cleared"] = counts()[0]
    return told


def _multiply_and_wait(
    multiply: Callable[[], None], done: threading.Event, end: threading.Event
) -> None:
    multiply()
    done.set()
    end.wait(60)


def context() -> dict[str, int]:
    """Device bytes in use by this process beyond torch's reserved ones, as libraries are loaded.

    "before" is what the card had in use without a context of ours, where NVML tells it.
    """
    told = {"before": _in_use()}
    torch.cuda.init()
    torch.zeros(1, device="cuda")

    def outside() -> int:
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved()

    told["context"], told["seen by NVML"] = outside(), _in_use()
    x = torch.randn(512, 512, device="cuda")
    (x @ x).sum().item()
    told["cublas"] = outside()
    nn.Conv2d(3, 8, 3).cuda()(torch.randn(2, 3, 32, 32, device="cuda")).sum().backward()
    told["cudnn"] = outside()
    return told


def _in_use() -> int:
    """Bytes in use on the card, without what the driver keeps for itself: NVML's second form."""
    try:
        import pynvml
    except ImportError:
        return -1
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    used = pynvml.nvmlDeviceGetMemoryInfo(card, version=pynvml.nvmlMemory_v2).used
    pynvml.nvmlShutdown()
    return int(used)


def peaks() -> dict[str, Any]:
    """Peak allocated and reserved of three steps of each loop, for the predictor."""
    return {name: _peak(loop) for name, loop in LOOPS.items()}


def _peak(loop: Loop) -> dict[str, Any]:
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()  # last: it gives back what the workspaces leave in the cache
    start = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    model, optimizer = loop.make("cuda")
    phases = [
        [phase, step, torch.cuda.memory_allocated() - start]
        for phase, step, _, _ in training(loop, "cuda", 3, model, optimizer)
    ]
    return {
        "allocated": torch.cuda.max_memory_allocated() - start,
        "reserved": torch.cuda.max_memory_reserved(),
        "phases": phases,
    }


def ledgers() -> dict[str, Any]:
    """A page for each phase of four steps of each loop, beside what torch says."""
    told = {}
    for name, loop in LOOPS.items():
        model, optimizer = loop.make("cuda")
        rows = []
        with Ledger(model, optimizer) as ledger:
            for phase, step, inputs, outputs in training(loop, "cuda", 4, model, optimizer):
                page = ledger.take(phase, step, inputs=inputs, outputs=outputs)
                rows.append([torch.cuda.memory_allocated(), asdict(replace(page, sites=()))])
        told[name] = rows
        del model, optimizer, ledger
        gc.collect()
    return told


def scratch(*without: str) -> dict[str, Any]:
    """Requests of single operators and the bytes of their outputs, but of those named."""
    x, w = torch.randn(512, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    image, kernel = (
        torch.randn(8, 32, 64, 64, device="cuda"),
        torch.randn(64, 32, 3, 3, device="cuda"),
    )
    index = torch.randint(0, 1024, (4096,), device="cuda")
    wide = torch.randn(4096, 1024, device="cuda")
    operators: dict[str, Callable[[], Any]] = {
        "sum": x.sum,
        "sum(0)": lambda: x.sum(0),
        "mean(-1)": lambda: x.mean(-1),
        "cumsum": lambda: x.cumsum(-1),
        "sort": lambda: x.sort(-1),
        "topk": lambda: x.topk(8),
        "argmax": lambda: x.argmax(-1),
        "softmax": lambda: x.softmax(-1),
        "norm": x.norm,
        "matmul": lambda: x @ w,
        "addmm": lambda: torch.addmm(w[0], x, w),
        "conv2d": lambda: torch.conv2d(image, kernel),
        "index_add": lambda: x.new_zeros(1024, 1024).index_add(0, index, wide),
        "index_put": lambda: w.clone().index_put((index,), wide, accumulate=True),
        "nonzero": lambda: (x > 0).nonzero(),
        "unique": lambda: index.unique(),
        "layer_norm": lambda: torch.layer_norm(x, (1024,)),
        "cross_entropy": lambda: nn.functional.cross_entropy(x, index[:512]),
        "multinomial": lambda: x.softmax(-1).multinomial(2),
        "dropout": lambda: nn.functional.dropout(x),
    }
    return {name: _requests(operators[name]) for name in operators if name not in without}


def _requests(operator: Callable[[], Any]) -> dict[str, list[int]]:
    operator()  # workspaces and plans are made here
    torch.cuda.memory._record_memory_history(context=None, max_entries=10_000)
    out = operator()
    entries = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    leaves = out if isinstance(out, (tuple, list)) else [out]
    return {
        "requests": [e["size"] for e in entries if e["action"] == "alloc"],
        "outputs": [leaf.untyped_storage().nbytes() for leaf in leaves],
    }


def requests() -> dict[str, list[int]]:
    """The bytes of every request of those loops of gpu_traces.py that cuDNN has no part in.

    In the predictor; a device has them in trace-native.json.gz.
    """
    told = {}
    torch._C._cuda_clearCublasWorkspaces()
    for name in ("mlp", "transformer", "transformer-amp"):
        torch.cuda.memory._record_memory_history(context=None)
        model, optimizer = LOOPS[name].make("cuda")
        for _ in training(LOOPS[name], "cuda", 3, model, optimizer):
            pass
        entries = torch.cuda.memory._snapshot()["device_traces"][0]
        told[name] = [entry["size"] for entry in entries if entry["action"] == "alloc"]
        del model, optimizer
    return told


def overhead() -> dict[str, Any]:
    """Median microseconds of a step, the variants taking turns in one process."""
    loop = LOOPS["transformer"]
    model, optimizer = loop.make("cuda")
    times: dict[str, list[float]] = {}

    def step(name: str, ledger: Ledger | None = None) -> None:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for phase, number, inputs, outputs in training(loop, "cuda", 1, model, optimizer):
            if ledger is not None:
                ledger.take(phase, number, inputs=inputs, outputs=outputs)
        torch.cuda.synchronize()
        times.setdefault(name, []).append((time.perf_counter() - start) * 1e6)

    record = torch.cuda.memory._record_memory_history
    for round_number in range(33):
        step("bare" if round_number > 2 else "warm-up")
        with allocation_stacks():
            step("stacks of live blocks")
        record(context=None, max_entries=100_000)
        step("history without stacks")
        record(context="all", stacks="python", max_entries=100_000)
        step("history with stacks")
        record(enabled=None)
        with Ledger(model, optimizer) as ledger:
            step("ledger", ledger)
        step("bare again")
    return {name: round(median(values), 1) for name, values in times.items() if name != "warm-up"}


def watching() -> dict[str, Any]:
    """What watching adds to a step, and what one reading of the device's allocator takes."""
    told = {name: watched_turns.measure(name) for name in ("cuda", "cuda-busy")}
    meter = DeviceMeter()
    readings = meter.read()
    return told | {
        "device_reading_us": _microseconds(meter.read),
        "slow_device_reading_us": _microseconds(lambda: meter.read_slow(readings)),
    }


def _microseconds(read: Callable[[], object], times: int = 500) -> float:
    began = time.perf_counter()
    for _ in range(times):
        read()
    return round((time.perf_counter() - began) * 1e6 / times, 1)


def published() -> dict[str, Any]:
    """Peaks of six published models; needs transformers."""
    import predictor_accuracy
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "peaks.json")
        predictor_accuracy.run(str(path), "")
        return {"transformers": transformers.__version__, "peaks": json.loads(path.read_text())}


CAPTURES: dict[str, Callable[[], Any]] = {
    "attention": gpu_rules.attention,
    "attention-by-kernel": gpu_rules.attention_by_kernel,
    "autocast": gpu_rules.autocast,
    "kernels": gpu_rules.kernels,
    "published": published,
    "watching": watching,
    "seeds": seeds,
    "seeds-without-workspaces": seeds,
    "workspaces": workspaces,
    "context": context,
    "peaks": peaks,
    "ledgers": ledgers,
    "scratch": scratch,
    "overhead": overhead,
}


# what has no section of its own; operators whose outputs depend on numbers are left out
def lengths() -> list[int]:
    """The bytes of every request of a model that is trained on six lengths, in order.

    In the predictor; a device has them in trace-gc.json.gz, of which no rule was made.
    """
    import gpu_traces  # which imports this module

    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.memory._record_memory_history(context=None)
    gpu_traces.train_lengths()
    entries = torch.cuda.memory._snapshot()["device_traces"][0]
    return [entry["size"] for entry in entries if entry["action"] == "alloc"]


PREDICTED: dict[str, Callable[[], Any]] = {
    "linear": linear,
    "lengths": lengths,
    "requests": requests,
    "scratch": partial(scratch, "nonzero", "unique"),
}


def main(path: str, *names: str) -> None:
    """Write the sections that are named as JSON."""
    sections = CAPTURES | PREDICTED
    Path(path).write_text(json.dumps({name: sections[name]() for name in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
