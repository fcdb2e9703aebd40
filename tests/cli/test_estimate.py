from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner, Result

from leakcheck.cli import leakcheck
from leakcheck.cli.estimate import command
from leakcheck.cli.questions import PROGRAM, TAKES
from leakcheck.errors import LeakcheckError, UsageError
from leakcheck.memory.prediction import Prediction, Request
from leakcheck.memory.profiles import profile
from leakcheck.model import LedgerPage, LedgerRow

ZERO1 = """\
Estimated memory needed for params, optim states and gradients for a:
HW: Setup with 1 node, 8 GPUs per node.
SW: Model with 2851M total params.
  per CPU  |  per GPU |   Options
  127.45GB |  10.62GB | offload_optimizer=cpu
  127.45GB |  14.60GB | offload_optimizer=none
"""

TEXT = """\
predicted for t4, batch size 8, 3 steps: fits (14.6 GiB)
  peak allocated  1.0 GiB
  peak reserved   1.1 GiB
  with context    1.2 GiB
  peaks           forward 1.0 GiB
  after forward: 1.0 GiB
    parameters           1.0 GiB
  holds if: a value does not matter
  not honoured: compiled code
  no interval: nobody measured how far this moves the peak
"""


def estimate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(leakcheck, ["estimate", *map(str, arguments)])


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> Prediction:
    """What the predictor answers, whatever is asked."""
    gib = 1 << 30
    page = LedgerPage("after forward", 2, (LedgerRow("parameters", gib, 2),), gib, gib)
    prediction = Prediction(
        device="t4",
        mode="fake",
        steps=3,
        peak_allocated_bytes=gib,
        peak_reserved_bytes=gib + (100 << 20),
        context_bytes=profile("t4").context_bytes,
        memory_bytes=profile("t4").memory_bytes,
        phase_peaks={"forward": gib},
        pages=(page,),
        notes=("compiled code",),
        conditions=("a value does not matter",),
        batch_size=8,
    )
    monkeypatch.setattr("leakcheck.memory.predict.predict", lambda *_: prediction)
    return prediction


def test_the_closed_form_prints_the_table_of_the_stage():
    done = estimate("--zero1", "--params", "2851e6", "--gpus-per-node", "8")

    assert done.exit_code == 0
    assert done.output.startswith(ZERO1)
    assert done.output.splitlines()[-1].startswith("rough: model states only, no activations")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--zero2"], "--zero2 needs --params, e.g. --params 2851e6"),
        (["--zero3", "--params", "1e9"], "--zero3 needs --largest-layer-params, e.g. 32e6"),
        ([], "name a script or module:function, or --zero1/2/3 or --formula with --params"),
        (["--device", "h20", "x.py"], 'no profile of a device "h20"; did you mean "h200"?'),
        (["missing.py"], "missing.py: there is no such file"),
    ],
)
def test_what_cannot_be_estimated_is_told_in_one_line(arguments, message):
    done = estimate(*arguments)

    assert isinstance(done.exception, LeakcheckError)
    assert done.exception.exit_code == 2
    assert str(done.exception) == message


def test_a_prediction_is_told_with_interval_phases_categories_and_assumptions(predicted):
    done = estimate("train.py:train", "--device", "t4")

    assert done.exit_code == 0
    assert done.output == TEXT


def test_a_prediction_of_what_is_modelled_has_intervals(predicted, monkeypatch):
    sure = replace(predicted, notes=(), context_measured=False)
    monkeypatch.setattr("leakcheck.memory.predict.predict", lambda *_: sure)

    told = estimate("train.py:train").output

    assert "peak reserved   1.1 GiB (1.0 GiB to 1.2 GiB)" in told
    assert "with context    1.2 GiB (that of a T4, assumed)" in told


def test_a_page_shows_the_picture_and_the_text(predicted, tmp_path):
    page = tmp_path / "page.html"

    done = estimate("--html", page, "train.py:train")

    assert "<h1>train.py:train on h200</h1>" in page.read_text()
    assert "<svg" in page.read_text()
    assert done.output.strip() in page.read_text()


def test_json_and_picture_hold_the_same_prediction(predicted, tmp_path):
    picture = tmp_path / "step.svg"

    done = estimate("--json", "--svg", picture, "train.py:train")

    (told,) = json.loads(done.output)["predictions"]
    assert told["peak_allocated_bytes"] == predicted.peak_allocated_bytes
    assert told["fits"] is True
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_the_devices_are_listed_with_what_was_measured_of_them():
    done = estimate("--devices")

    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert lines[1].split() == [
        *("t4", "Tesla", "T4", "7.5", "14.6", "GiB,", "measured", "measured"),
        *("8.1", "MiB"),
    ]
    assert any(line.startswith("b200") and "data sheet" in line for line in lines)


def test_a_program_too_large_for_the_device_exits_one(predicted, monkeypatch):
    monkeypatch.setattr(Prediction, "fits", property(lambda _: False))

    assert estimate("train.py:train").exit_code == 1


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "1e300"])
def test_a_timeout_that_is_no_time_is_refused(number: str):
    result = estimate("--timeout", number, "train.py")
    assert result.exit_code == 2
    assert "--timeout" in result.output


@pytest.mark.parametrize("factor", ["nan", "inf", "-1"])
def test_a_buffer_factor_that_is_no_factor_is_refused(factor: str):
    result = estimate("--zero2", "--params", "2851e6", "--buffer-factor", factor)
    assert result.exit_code == 2
    assert "--buffer-factor" in result.output


@pytest.mark.parametrize(("given", "near"), [("--polcy", "--policy"), ("--devise=t4", "--device")])
def test_a_misspelt_option_is_named_with_the_nearest(given: str, near: str):
    told = str(estimate(given, "train.py").exception)

    name = given.partition("=")[0]
    assert told == (
        f"No such option '{name}'. Did you mean '{near}'? Options of the program's own go after "
        f"--: leakcheck estimate TARGET -- {name}"
    )


@pytest.mark.parametrize("arguments", [("--lr", "0.1"), ("--lr=0.1",), ("-lr", "0.1")])
def test_an_option_of_the_program_is_told_how_to_reach_it(arguments: tuple[str, ...]):
    told = str(estimate("train.py", *arguments).exception)

    name = arguments[0].partition("=")[0]
    assert told == (
        f"No such option '{name}'. Options of the program's own go after --: "
        f"leakcheck estimate TARGET -- {name}"
    )


@pytest.fixture
def requests(predicted: Prediction, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What the predictor is asked."""
    seen: list[Request] = []

    def predict(request: Request, timeout_s: float) -> Prediction:
        seen.append(request)
        return predicted

    monkeypatch.setattr("leakcheck.memory.predict.predict", predict)
    return seen


@pytest.mark.parametrize(
    "arguments",
    [
        ("--device", "a100", "--steps", "5", "train.py", "--", "--lr", "0.1", "--steps", "9"),
        ("train.py", "--device", "a100", "--steps=5", "--", "--lr", "0.1", "--steps", "9"),
        ("--steps", "5", "train.py", "--device=a100", "--", "--lr", "0.1", "--steps", "9"),
        ("--steps", "5", "--device=a100", "--", "train.py", "--lr", "0.1", "--steps", "9"),
    ],
)
def test_options_stand_on_both_sides_and_the_programs_own_after_two_dashes(
    arguments: tuple[str, ...], requests: list[Request]
):
    done = estimate(*arguments)

    assert done.exit_code == 0
    own = ("--lr", "0.1", "--steps", "9")
    assert requests == [Request("train.py", own, device="a100", steps=5)]


def test_a_function_takes_its_arguments_beside_options(requests: list[Request]):
    estimate("train.py:build", "width=8", "--device", "a100", "depth=2", "--batch-size", "4")

    given = ("width=8", "depth=2")
    assert requests == [Request("train.py:build", given, device="a100", batch_size=4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("train.py", "--params", "1e9"),
            "--params has no effect with a program; it goes with --formula, --zero1, --zero2 or "
            "--zero3",
        ),
        (
            ("train.py:build", "--largest-batch", "--measured", "run.pickle"),
            "--measured has no effect with --largest-batch; ask for one of them",
        ),
        (
            ("train.py:build", "--largest-batch", "--batch-size", "8"),
            "--batch-size has no effect with --largest-batch; it goes with --formula, --measured "
            "or a program",
        ),
        (
            ("--formula", "--params", "1e9", "--sequence-length", "8", "--html", "page.html"),
            "--html has no effect with --formula; it goes with --largest-batch, --measured or a "
            "program",
        ),
        (
            ("--zero2", "--params", "1e9", "--largest-layer-params", "1e6"),
            "--largest-layer-params has no effect with --zero2; it goes with --zero3",
        ),
        (
            ("--zero1", "--zero3", "--params", "1e9"),
            "--zero3 has no effect with --zero1; ask for one of them",
        ),
        (
            ("--zero1", "--params", "1e9", "--steps", "3"),  # the default, but given
            "--steps has no effect with --zero1; it goes with --largest-batch, --measured or a "
            "program",
        ),
        (
            ("--devices", "--svg", "devices.svg"),
            "--svg has no effect with --devices; it goes with --largest-batch, --measured or a "
            "program",
        ),
        (("--devices", "train.py"), "train.py: --devices lists what is known and takes no program"),
        (("--", "--lr"), "--lr: name a script or module:function before --"),
    ],
)
def test_an_option_without_effect_is_refused(
    arguments: tuple[str, ...], message: str, requests: list[Request]
):
    done = estimate(*arguments)

    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == message
    assert requests == []


def test_every_option_goes_with_some_question():
    named = {param.opts[0] for param in command.params if isinstance(param, click.Option)}

    assert set().union(TAKES, *TAKES.values()) == named | {PROGRAM}


@pytest.mark.parametrize("sized", ["--largest-batch", "--batch-size=8"])
def test_a_script_takes_no_batch_size(sized: str, tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.ones(9, device='cuda')\n")

    told = estimate(script, sized).exception

    assert isinstance(told, UsageError)
    assert str(told) == (
        f"{script}: a script takes no batch size; name a function with the parameter batch_size "
        f"that makes or returns a step, such as {script}:build with `def build(device, "
        "batch_size)`, or hand the script an option of its own after --"
    )


FUNCTIONS = """\
import torch


def without(device):
    torch.ones(9, device=device)


def regardless(device, batch_size):
    torch.ones(9, device=device)
"""


@pytest.mark.usefixtures("forked_python")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "without",
            "the function takes no batch_size; give it that parameter, as "
            "`def without(device, batch_size)`",
        ),
        (
            "regardless",
            "needs the same memory for 1 and 1,024 samples; make the tensors of a step with as "
            "many rows as its parameter batch_size says",
        ),
    ],
)
def test_a_function_whose_memory_knows_no_batch_size_has_no_largest(
    function: str, message: str, tmp_path: Path
):
    (tmp_path / "train.py").write_text(FUNCTIONS)
    target = f"{tmp_path}/train.py:{function}"

    told = estimate(target, "--largest-batch").exception

    assert isinstance(told, LeakcheckError)
    assert str(told) == f"{target}: {message}"


@pytest.mark.usefixtures("forked_python")
def test_broken_source_is_named_by_its_own_line(tmp_path: Path):
    path = tmp_path / "train.py"
    path.write_text("import torch\ndef f(:\n")
    told = str(estimate(path).exception)
    assert told.startswith(f"{path}:2: SyntaxError: ")
