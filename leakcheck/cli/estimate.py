"""`leakcheck estimate`: the device memory a training program will need, without the device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leakcheck.cli import estimate_formula, measured_run, questions
from leakcheck.cli.finite import FiniteRange
from leakcheck.cli.output import emit
from leakcheck.cli.zero_tables import Count, table
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, UsageError
from leakcheck.memory.policies import POLICIES
from leakcheck.report import device_page
from leakcheck.report.device import page_lines
from leakcheck.units import format_bytes
from leakcheck.writing import replace_file

if TYPE_CHECKING:
    from leakcheck.memory.prediction import Prediction, Request
    from leakcheck.memory.profiles import DeviceProfile
    from leakcheck.memory.trace import Trace

MOST_SITES = 8
_MOST_TIMEOUT_S = 7 * 86_400
_DEVICE_ROW = "{:<12}{:<26}{:>4}  {:<22}{:<14}{}"
_DEVICE_FOOT = """\
usual: what such a card usually reports; data sheet: its round number. Near the border ask the card
itself: torch.cuda.mem_get_info(). Where no context was measured, the T4's is taken.\
"""


@click.command("estimate", cls=questions.Command)
@click.option(
    "--device",
    default="h200",
    show_default=True,
    help="t4, a100, h100, h200, ...; only the t4 was measured, see --devices.",
)
@click.option(
    "--devices", is_flag=True, help="List the devices, with what is measured of each and what not."
)
@click.option(
    "--batch-size",
    "batch_sizes",
    multiple=True,
    type=click.IntRange(min=1),
    help="Batch size to pass to the function; repeat it for a sweep.",
)
@click.option("--largest-batch", is_flag=True, help="Find the largest batch size that fits.")
@click.option(
    "--policy", type=click.Choice(list(POLICIES)), default="native", help="Allocator policy."
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=3, show_default=True, help="Optimizer steps."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=1, max=_MOST_TIMEOUT_S),
    default=300.0,
    show_default=True,
    help="Seconds a prediction may take.",
)
@click.option("--on-cpu", is_flag=True, help="Run the real step on the host instead of a fake one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--measured",
    type=click.Path(path_type=Path),
    help="A torch.cuda.memory snapshot or trace of the real run, to compare with.",
)
@click.option("--svg", type=click.Path(path_type=Path), help="Draw the step by category there.")
@click.option(
    "--html", type=click.Path(path_type=Path), help="Write a page with the picture into this file."
)
@click.option("--zero1", is_flag=True, help="ZeRO-1 model states in closed form.")
@click.option("--zero2", is_flag=True, help="ZeRO-2 model states in closed form.")
@click.option("--zero3", is_flag=True, help="ZeRO-3 model states in closed form.")
@click.option(
    "--formula", is_flag=True, help="A transformer's training step in closed form, roughly."
)
@click.option("--params", type=Count(), help="Parameters of the model, e.g. 2851e6.")
@click.option("--sequence-length", type=click.IntRange(min=1), help="Tokens a sample (--formula).")
@click.option(
    "--optimizer",
    type=click.Choice(estimate_formula.OPTIMIZER_NAMES),
    default=estimate_formula.USUAL_OPTIMIZER,
    show_default=True,
    help="Its optimizer (--formula).",
)
@click.option(
    "--element-bytes",
    type=click.IntRange(min=1, max=8),
    default=4,
    show_default=True,
    help="Bytes of a parameter (--formula).",
)
@click.option(
    "--largest-layer-params", type=Count(), help="Parameters of its largest layer (ZeRO-3)."
)
@click.option("--gpus-per-node", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--buffer-factor", type=FiniteRange(min=0), default=1.5, show_default=True)
@click.argument("target", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENT ...]")
@click.pass_context
def command(
    context: click.Context,
    /,
    target: str | None,
    arguments: tuple[str, ...],
    **options: Any,
) -> None:
    """Predict the device memory of TARGET: a script, module:function or file.py:function.

    The program runs for a few steps on a device that holds no bytes, so neither a GPU nor a CUDA
    build of torch is needed. A function may take `device` and `batch_size`; it makes the steps
    itself or returns a callable that makes one. With --zero1, --zero2 or --zero3 and --params the
    estimate is the closed form for model states alone; with --formula that for a whole step of a
    transformer.

    Options stand before or after TARGET. What is meant for the program comes after --, as in
    `leakcheck estimate train.py --device a100 -- --lr 0.1`; a function takes NAME=VALUE. An option
    that would change nothing is refused.

    Exits 0 when it fits the device, 1 when it does not, and 2 when there is no estimate.
    """
    question = questions.asked(context, target)
    if question == "--devices":
        emit(_device_table())
    elif question == "--formula":
        emit(_formula(options))
    elif question in questions.CLOSED_FORMS:
        emit(_model_states(int(question[-1]), options))
    else:
        assert target is not None
        raise SystemExit(_predict(question, target, arguments, options))


def _formula(options: dict[str, Any]) -> str:
    answer = estimate_formula.as_json if options["as_json"] else estimate_formula.table
    return answer(estimate_formula.Training.of(options))


def _model_states(stage: int, options: dict[str, Any]) -> str:
    setup = (options["gpus_per_node"], options["nodes"], options["buffer_factor"])
    sizes = (options["params"], options["largest_layer_params"])
    return table(stage, *sizes, setup, as_json=options["as_json"])


def _predict(
    question: str, target: str, arguments: tuple[str, ...], options: dict[str, Any]
) -> int:
    _need_torch()
    from leakcheck.memory.prediction import Request

    measured, batch_sizes = options["measured"], options["batch_sizes"]
    if measured is not None and len(batch_sizes) > 1:
        raise UsageError("--measured is one run; give one --batch-size")
    recorded = measured_run.read(measured) if measured is not None else None
    chosen = {name: options[name] for name in ("device", "policy", "steps", "on_cpu")}
    request = Request(target, arguments, **chosen)
    largest = question == "--largest-batch"
    predictions = _predictions(request, batch_sizes, largest, options["timeout_s"])
    title = f"{target} on {options['device']}"
    pages = (options["svg"], options["html"])
    _write(predictions, recorded, title, *pages, as_json=options["as_json"])
    return EXIT_CLEAN if all(each.fits for each in predictions) else EXIT_FOUND


def _write(
    predictions: tuple[Prediction, ...],
    recorded: Trace | None,
    title: str,
    svg: Path | None,
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    last = predictions[-1]
    compared = measured_run.compared(recorded, last) if recorded is not None else None
    pictures = measured_run.pictures(last, compared) if svg or html else ()
    if svg is not None:
        replace_file(svg, measured_run.stacked(pictures))
    text = "\n\n".join(_text(each) for each in predictions)
    if compared is not None:
        text += "\n\n" + measured_run.text(compared)
    if html is not None:
        replace_file(html, device_page.render(title, pictures, text))
    if as_json:
        told: dict[str, object] = {
            "format": 1,
            "predictions": [_told(each) for each in predictions],
        }
        if compared is not None:
            told["measured"] = measured_run.told(compared)
        emit(json.dumps(told, indent=2))
    else:
        emit(text)


def _predictions(
    request: Request, batch_sizes: tuple[int, ...], largest: bool, timeout_s: float
) -> tuple[Prediction, ...]:
    from leakcheck.memory.predict import largest_batch, predict, sweep

    if largest:
        found = largest_batch(request, timeout_s)
        if found is None:
            one = predict(replace(request, batch_size=1), timeout_s)
            return (one,)
        return (found,)
    if batch_sizes:
        return sweep(request, batch_sizes, timeout_s)
    return (predict(request, timeout_s),)


def _need_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UsageError("a prediction needs torch (a CPU build will do): pip install torch")


def _told(prediction: Prediction) -> dict[str, object]:
    derived = ("fits", "allocated_interval", "reserved_interval", "process_bytes")
    told = asdict(replace(prediction, timeline=None))
    del told["timeline"]  # a picture's columns
    return told | {name: getattr(prediction, name) for name in derived}


def _text(prediction: Prediction) -> str:
    from leakcheck.memory.predict import LARGEST_BATCH_SIZE

    batch = f", batch size {prediction.batch_size}" if prediction.batch_size else ""
    batch += " (no larger one is tried)" if prediction.batch_size == LARGEST_BATCH_SIZE else ""
    fits = "fits" if prediction.fits else "does not fit"
    allocated, reserved = prediction.peak_allocated_bytes, prediction.peak_reserved_bytes
    context = "" if prediction.context_measured else " (that of a T4, assumed)"
    lines = [
        f"predicted for {prediction.device}{batch}, {prediction.steps} steps:"
        f" {fits} ({format_bytes(prediction.memory_bytes)})",
        f"  peak allocated  {_between(allocated, prediction.allocated_interval)}",
        f"  peak reserved   {_between(reserved, prediction.reserved_interval)}",
        f"  with context    {format_bytes(prediction.process_bytes)}{context}",
    ]
    phases = [f"{name} {format_bytes(size)}" for name, size in prediction.phase_peaks.items()]
    lines += [f"  peaks           {', '.join(phases)}"] if phases else []
    if prediction.output_bytes:
        outputs = format_bytes(prediction.output_bytes)
        lines.append(f"  module outputs  {outputs}, as forward hooks sum them (rough)")
    lines += [f"  {line}" for page in prediction.pages for line in page_lines(page)]
    if prediction.peak_page is not None:
        lines += [f"  {line}" for line in page_lines(prediction.peak_page, MOST_SITES)]
    return "\n".join([*lines, *_reservations(prediction)])


def _between(peak_bytes: int, interval: tuple[int, int] | None) -> str:
    if interval is None:
        return format_bytes(peak_bytes)
    low, high = interval
    return f"{format_bytes(peak_bytes)} ({format_bytes(low)} to {format_bytes(high)})"


def _reservations(prediction: Prediction) -> list[str]:
    """What the numbers hold for, what is missing from them, and why there is no interval."""
    lines = [f"  holds if: {condition}" for condition in prediction.conditions]
    lines += [f"  not honoured: {note}" for note in prediction.notes]
    if prediction.error is None:
        lines.append("  no interval: nobody measured how far this moves the peak")
    return lines


def _device_table() -> str:
    """Return the devices, a line each, with what their numbers rest on."""
    return "\n".join(_device_lines())


def _device_lines() -> Iterator[str]:
    from leakcheck.memory.profiles import profiles

    yield _DEVICE_ROW.format("device", "name", "", "memory", "context", "cuBLAS workspace").rstrip()
    yield from map(_device_line, profiles().values())
    yield _DEVICE_FOOT


def _device_line(profile: DeviceProfile) -> str:
    memory = f"{format_bytes(profile.memory_bytes)}, {profile.memory_source}"
    context = "measured" if profile.context_measured else "not measured"
    workspace = format_bytes(profile.workspace_bytes)
    capability = ".".join(map(str, profile.capability))
    return _DEVICE_ROW.format(profile.key, profile.name, capability, memory, context, workspace)
