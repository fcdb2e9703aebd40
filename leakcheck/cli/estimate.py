"""`leakcheck estimate`: what a training step would need on a device, without that device."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from leakcheck.cli.output import emit
from leakcheck.cli.zero_tables import tables
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, LeakcheckError, UsageError
from leakcheck.units import format_bytes

if TYPE_CHECKING:
    from leakcheck.memory.prediction import Prediction, Request
    from leakcheck.model import LedgerPage

POLICY_NAMES = ("native", "expandable", "autogrowth", "ideal")
MOST_PARAMS = 10**18


class Count(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A whole number, also written as "2851e6" or "32_899_072"."""

    name = "count"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the number; a usage error when it is none, or not a positive one."""
        try:
            count = Decimal(str(value))
        except InvalidOperation:
            self.fail(f'"{value}" is not a number; write it as 2851e6', param, ctx)
        if not 0 < count < MOST_PARAMS or count != int(count):
            self.fail(f'"{value}" is not a whole number above 0', param, ctx)
        return int(count)


def _sizes(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...]:
    if value is None:
        return ()
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f'--batch-size: "{value}" is not a size or a list such as 8,16,32')
    return tuple(int(part) for part in parts)


@click.command("estimate")
@click.argument("target", required=False)
@click.argument("arguments", nargs=-1)
@click.option("--device", default="h200", show_default=True, help="t4, a100, h100, h200 and so on.")
@click.option("--batch-size", callback=_sizes, metavar="N[,N...]", help="One size, or a sweep.")
@click.option("--largest-batch", is_flag=True, help="Search for the largest size that fits.")
@click.option("--policy", type=click.Choice(POLICY_NAMES), default="native", show_default=True)
@click.option("--steps", type=click.IntRange(min=2), default=3, show_default=True)
@click.option("--timeout", type=click.FloatRange(min=1), default=300.0, show_default=True)
@click.option("--on-cpu", is_flag=True, help="Run the real step on the host instead.")
@click.option("--zero1", is_flag=True, help="The closed form of ZeRO-1 for --params.")
@click.option("--zero2", is_flag=True, help="The closed form of ZeRO-2 for --params.")
@click.option("--zero3", is_flag=True, help="The closed form of ZeRO-3; needs --largest-layer.")
@click.option("--formula", is_flag=True, help="The rough formula for a transformer of --params.")
@click.option("--params", type=Count(), metavar="N", help="Parameters of the model: 2851e6.")
@click.option("--largest-layer", type=Count(), metavar="N", help="Parameters of its largest layer.")
@click.option("--gpus-per-node", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--buffer-factor", type=click.FloatRange(min=0, min_open=True), default=1.5)
@click.option("--sequence-length", type=click.IntRange(min=1), default=1024, show_default=True)
@click.option("--optimizer", default="AdamW", show_default=True, help="For --formula.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(target: str | None, arguments: tuple[str, ...], **options: Any) -> None:
    """Predict the device memory of a training program on a machine without that device.

    TARGET is a script as it is (ARGUMENTS, after `--`, are its own), or `module:function` or
    `file.py:function`. A script runs until --steps optimizer steps are made; "cuda" means the
    simulated device in it. A function may take `device` and `batch_size`, and either trains, or
    returns a function that makes one step.

    Exits 0 when it fits the device, 1 when it does not, 2 when it could not be predicted. With
    --zero1, --zero2, --zero3 or --formula no program is run: those are arithmetic, and rough.
    """
    if any(options[name] for name in ("zero1", "zero2", "zero3", "formula")):
        if target is not None:
            raise UsageError(f"{target}: the closed forms take --params, not a program")
        emit(tables(options))
        return
    if target is None:
        raise UsageError("what to estimate? A script, module:function, or --zero2 --params 2851e6")
    if importlib.util.find_spec("torch") is None:
        raise LeakcheckError("torch is not installed; pip install torch (the CPU build will do)")
    predictions = _predict(target, arguments, options)
    if options["as_json"]:
        found = [_as_dict(prediction) for prediction in predictions]
        emit(json.dumps({"format": 1, "target": target, "predictions": found}, indent=1))
    else:
        emit("\n\n".join(_text(target, prediction) for prediction in predictions))
    fits = any(p.fits for p in predictions) if options["largest_batch"] else predictions[-1].fits
    raise SystemExit(EXIT_CLEAN if fits else EXIT_FOUND)


def _predict(
    target: str, arguments: tuple[str, ...], options: dict[str, Any]
) -> Sequence[Prediction]:
    from leakcheck.memory.predict import largest_batch, predict, sweep

    sizes, timeout_s = options["batch_size"], options["timeout"]
    request = _request(target, arguments, options)
    if (sizes or options["largest_batch"]) and not target.rpartition(":")[1]:
        raise UsageError(f"{target}: a script has no batch_size; name a function that takes one")
    if options["largest_batch"]:
        best = largest_batch(request, timeout_s)
        if best is None:
            raise LeakcheckError(f"{target}: not even one sample fits on {options['device']}")
        return (best,)
    return sweep(request, sizes, timeout_s) if sizes else (predict(request, timeout_s),)


def _request(target: str, arguments: tuple[str, ...], options: dict[str, Any]) -> Request:
    from leakcheck.memory.prediction import Request

    named = {name: options[name] for name in ("device", "policy", "steps", "on_cpu")}
    return Request(target, arguments, **named)


def _as_dict(prediction: Prediction) -> dict[str, Any]:
    derived = ("low_bytes", "high_bytes", "process_bytes", "fits")
    return asdict(prediction) | {name: getattr(prediction, name) for name in derived}


def _text(target: str, prediction: Prediction) -> str:
    return "\n".join(
        [
            *_headline(target, prediction),
            *[f"   not honoured: {note}" for note in prediction.notes],
            "",
            *_phases(prediction),
            *(_ledger(_last_pages(prediction.pages)) if prediction.pages else ()),
        ]
    )


def _headline(target: str, prediction: Prediction) -> list[str]:
    from leakcheck.memory.profiles import profile

    device = profile(prediction.device)
    size = f", batch size {prediction.batch_size}" if prediction.batch_size else ""
    low, high = format_bytes(prediction.low_bytes), format_bytes(prediction.high_bytes)
    context = format_bytes(prediction.context_bytes)
    borrowed = "" if device.context_measured else ", as on a Tesla T4"
    whole, room = format_bytes(prediction.process_bytes), format_bytes(prediction.memory_bytes)
    fits = "fits" if prediction.fits else "does not fit"
    return [
        f"{target} on {device.name}{size}: peak {format_bytes(prediction.peak_allocated_bytes)} "
        f"allocated ({low} to {high})",
        f"   reserved {format_bytes(prediction.peak_reserved_bytes)}, CUDA context {context}"
        f"{borrowed}: {whole} of {room}, {fits}",
    ]


def _phases(prediction: Prediction) -> list[str]:
    peaks = prediction.phase_peaks
    parts = [f"{phase} {format_bytes(peak)}" for phase, peak in peaks.items()]
    return [f"peak by phase: {', '.join(parts)}"] if parts else []


def _last_pages(pages: Sequence[LedgerPage]) -> list[LedgerPage]:
    """The pages of the last step, in order: one for each phase."""
    last = pages[-1].step
    return [page for page in pages if page.step == last]


def _ledger(pages: list[LedgerPage]) -> list[str]:
    names = dict.fromkeys(row.category for page in pages for row in page.rows)
    width = max(len(name) for name in (*names, "allocated")) + 2
    header = "step " + str(pages[-1].step + 1)
    lines = [header.ljust(width) + "".join(f"{page.phase:>16}" for page in pages)]
    for name in names:
        cells = "".join(f"{format_bytes(page.size_bytes(name)):>16}" for page in pages)
        lines.append(name.ljust(width) + cells)
    total = "".join(f"{format_bytes(page.allocated_bytes):>16}" for page in pages)
    return ["", *lines, "allocated".ljust(width) + total]
