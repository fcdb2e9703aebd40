"""How well the predictor meets peaks that were measured on a real GPU: three tables.

    pip install transformers
    python tests/benchmarks/predictor_accuracy.py           # all three
    python tests/benchmarks/predictor_accuracy.py t4 --alone   # each run in a process of its own

`t4`: six training runs that others measured on a Tesla T4 (torch 2.11, cu128; calibration fixtures
of torch-preflight 0.5, tests/calibration): `max_memory_allocated` and `max_memory_reserved` of the
second step under bfloat16 autocast with AdamW. bfloat16 is emulated there, so attention takes the
math path; the model's output lives through backward and the optimizer step.

They were measured one after the other in one process, after five small transformers. What ran
before is part of the number: cuBLAS workspaces stay where the first step put them, and which block
a request finds, so how much of it is slop, depends on it. `--run FILE` is that program; it also
runs on a real device.

`published` and `loops`: the same program, and the loops of gpu_loops.py, as gpu_capture.py recorded
them on a device (tests/data/gpu).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch.nn import functional

# model, batch, length -> peak allocated, peak reserved
MEASURED_BYTES = {
    ("gpt2", 4, 128): (2_705_153_536, 3_042_967_552),
    ("gpt2", 8, 256): (5_736_883_712, 6_092_226_560),
    ("distilbert", 4, 128): (1_354_818_048, 1_501_560_832),
    ("distilbert", 8, 256): (1_757_328_384, 1_954_545_664),
    ("bert", 4, 128): (2_209_738_240, 2_483_027_968),
    ("bert", 8, 256): (3_185_408_000, 3_491_758_080),
}
# layers, width, heads, inner width, batch, length, dropout (biases only with it), fused attention
WARMING_UP = (
    (4, 512, 8, 2048, 4, 256, 0.0, False),
    (6, 768, 12, 3072, 8, 512, 0.1, False),
    (6, 768, 12, 3072, 4, 1024, 0.0, True),
    (12, 768, 12, 3072, 2, 512, 0.0, False),
    (4, 1024, 16, 4096, 2, 1024, 0.0, True),
)
CAPTURED = Path(__file__).parents[1] / "data" / "gpu"
Peaks = dict[str, Any]  # of a run: allocated and reserved bytes


class Layer(torch.nn.Module):
    """A pre-norm transformer layer with its attention written out, or left to torch."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, fused: bool) -> None:
        super().__init__()
        shapes = dict.fromkeys(("query", "key", "value", "out"), (width, width))
        shapes |= {"up": (width, inner), "down": (inner, width)}
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.maps = torch.nn.ModuleDict(
            {name: torch.nn.Linear(*shape, bias=dropout > 0) for name, shape in shapes.items()}
        )
        self.drop = torch.nn.Dropout(dropout) if dropout else torch.nn.Identity()
        self.heads, self.fused = heads, fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norms[0](x)
        split = (*x.shape[:2], self.heads, -1)
        q = self.maps["query"](normed).view(split).transpose(1, 2)
        k = self.maps["key"](normed).view(split).transpose(1, 2)
        v = self.maps["value"](normed).view(split).transpose(1, 2)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v)
        else:
            scale = (x.size(-1) // self.heads) ** 0.5
            mixed = self.drop(((q @ k.transpose(-2, -1)) / scale).softmax(-1)) @ v
        x = x + self.drop(self.maps["out"](mixed.transpose(1, 2).reshape(x.shape)))
        hidden = functional.gelu(self.maps["up"](self.norms[1](x)))
        return x + self.drop(self.maps["down"](hidden))


def train(model: torch.nn.Module, forward: Callable[[], tuple[object, torch.Tensor]]) -> int:
    """Make a step, then one whose peaks count; return those as torch tells them."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            _out, loss = forward()
        loss.backward()
        optimizer.step()

    step()
    torch.cuda.reset_peak_memory_stats()
    step()
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def published(kind: str, batch: int, length: int) -> tuple[int, int]:
    """Train one of the published models and return its peaks."""
    import transformers

    config, model_class = {
        "gpt2": (transformers.GPT2Config(), transformers.GPT2LMHeadModel),
        "distilbert": (transformers.DistilBertConfig(), transformers.DistilBertModel),
        "bert": (transformers.BertConfig(), transformers.BertModel),
    }[kind]
    torch.cuda.empty_cache()
    model = model_class(config).cuda().train()
    ids = torch.randint(0, config.vocab_size - 1, (batch, length), device="cuda")

    def forward() -> tuple[object, torch.Tensor]:
        if kind == "gpt2":
            out = model(input_ids=ids, labels=ids)
            return out, out.loss
        out = model(input_ids=ids)
        return out, out.last_hidden_state.float().pow(2).mean()

    return train(model, forward)


def warm_up() -> None:
    """What the program did before: a product, a convolution, five small transformers."""
    a = torch.randn(256, 256, device="cuda")
    (a @ a).sum().item()
    conv = torch.nn.Conv2d(3, 16, 3, padding=1).cuda()
    conv(torch.randn(1, 3, 64, 64, device="cuda")).sum().backward()
    del a, conv
    for layers, width, heads, inner, batch, length, dropout, fused in WARMING_UP:
        torch.cuda.empty_cache()
        model = torch.nn.Sequential(
            *(Layer(width, heads, inner, dropout, fused) for _ in range(layers))
        ).cuda()
        x = torch.randn(batch, length, width, device="cuda")
        train(model, lambda model=model, x=x: (None, model(x).float().pow(2).mean()))
        del model, x


def run(path: str, only: str) -> None:
    """The program itself: write the peaks of the runs as JSON."""
    if only:
        kind, batch, length = only.split(",")
        peaks = {only: published(kind, int(batch), int(length))}
    else:
        warm_up()
        peaks = {",".join(map(str, key)): published(*key) for key in MEASURED_BYTES}
    Path(path).write_text(json.dumps(peaks))


def predicted(device: str, alone: bool) -> Peaks:
    """Let the predictor run the program as a device and read what it wrote."""
    parts = [",".join(map(str, key)) for key in MEASURED_BYTES] if alone else [""]
    found: Peaks = {}
    for part in parts:
        found |= _answer(__file__, device, lambda path, part=part: ("--run", path, part))
    return found


def predicted_loops(device: str) -> Peaks:
    """Let the predictor run the recorded loops as a device."""
    sections = str(Path(__file__).with_name("gpu_sections.py"))
    peaks = _answer(sections, device, lambda path: (path, "peaks"))["peaks"]
    return {name: (each["allocated"], each["reserved"]) for name, each in peaks.items()}


def _answer(program: str, device: str, arguments: Callable[[str], tuple[str, ...]]) -> Any:
    from leakcheck.memory.predict import predict
    from leakcheck.memory.prediction import Request

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "peaks.json"))
        prediction = predict(Request(program, arguments(path), device=device, steps=1000), 900)
        if prediction.mode != "fake":
            raise SystemExit(f"{program} ran on the host: {prediction.notes[-1]}")
        return json.loads(Path(path).read_text())


def captured(section: str) -> tuple[str, Any]:
    """The device that a section was recorded on, as the predictor knows it, and the data."""
    from leakcheck.memory.profiles import profiles

    whole = json.loads((CAPTURED / f"{section}.json").read_text())
    (device,) = (key for key, each in profiles().items() if each.name == whole["device"])
    return device, whole["captured"]


def compare(title: str, found: Peaks, measured: Peaks) -> None:
    """Print a table, with the error of each peak."""
    print(f"{title:<26}{'predicted':>15}{'measured':>15}{'error':>9}{'reserved error':>17}")
    errors = []
    for name, (allocated, reserved) in measured.items():
        got = found[name]
        errors.append((abs(got[0] / allocated - 1), abs(got[1] / reserved - 1)))
        print(
            f"{name:<26}{got[0]:>15,}{allocated:>15,}"
            f"{got[0] / allocated - 1:>9.3%}{got[1] / reserved - 1:>17.3%}"
        )
    for name, column in zip(("allocated", "reserved"), zip(*errors, strict=True), strict=True):
        print(f"{name}: mean error {mean(column):.3%}, worst {max(column):.3%}")
    print()


def main() -> None:
    """Predict every point and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", default=["t4", "published", "loops"])
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    if "t4" in options.tables:
        measured = {",".join(map(str, key)): peaks for key, peaks in MEASURED_BYTES.items()}
        compare("t4", predicted("t4", options.alone), measured)
    if "published" in options.tables:
        device, told = captured("published")
        compare(device, predicted(device, options.alone), told["peaks"])
    if "loops" in options.tables:
        device, told = captured("peaks")
        measured = {name: (each["allocated"], each["reserved"]) for name, each in told.items()}
        compare(f"{device}, loops", predicted_loops(device), measured)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], sys.argv[3])
    else:
        main()
