"""Predict the device memory of a training program on a machine without the device.

The work is done in a process of its own, with a timeout: fake devices are global to a process, and
a rule that torch breaks can end it. If the fake run fails, the program runs again from its start,
for real and on the host, which the prediction says.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec

from leakcheck.errors import LeakcheckError, UsageError
from leakcheck.memory.policies import POLICIES
from leakcheck.memory.prediction import Prediction, Request
from leakcheck.memory.profiles import profile

DEFAULT_TIMEOUT_S = 300.0
LARGEST_BATCH_SIZE = 1 << 20
_MUST_DIFFER_AT = 1024  # a byte a sample is more than a block of 512 bytes hides
_AGAIN = "run again, for real and from its start, as fake tensors failed at {}"
# `-m` would put the working directory first, where a user's cuda.py takes the place of torch's
_WORKER = """
import sys
sys.path[:] = [place for place in sys.path if place] + [sys.argv.pop(1)]
from leakcheck.memory.predict_worker import main
main(*sys.argv[1:])
"""


def predict(request: Request, timeout_s: float = DEFAULT_TIMEOUT_S) -> Prediction:
    """Return the prediction for a script, `module:function` or `file.py:function`.

    The function may take `device` ("cuda") and `batch_size`, and either makes its training steps
    itself or returns a callable that makes one. Raises UsageError for a target that does not exist
    and LeakcheckError when neither the fake nor the real step could be run.
    """
    _check(request)
    answer = _ask(request, timeout_s)
    if "prediction" not in answer and answer.get("retry"):
        failed = answer["error"]
        answer = _ask(replace(request, on_cpu=True), timeout_s)
        if "prediction" not in answer:
            again = answer["error"]
            raise LeakcheckError(
                str(failed) if again == failed else f"{failed}; and on the host: {again}"
            )
        prediction = msgspec.convert(answer["prediction"], Prediction)
        return replace(prediction, notes=(*prediction.notes, _AGAIN.format(failed)))
    if "prediction" not in answer:
        raise LeakcheckError(str(answer["error"]))
    return msgspec.convert(answer["prediction"], Prediction)


def sweep(
    request: Request, batch_sizes: tuple[int, ...], timeout_s: float = DEFAULT_TIMEOUT_S
) -> tuple[Prediction, ...]:
    """Predict several batch sizes of a function that takes `batch_size`."""
    return tuple(predict(replace(request, batch_size=size), timeout_s) for size in batch_sizes)


def largest_batch(request: Request, timeout_s: float = DEFAULT_TIMEOUT_S) -> Prediction | None:
    """Find the largest batch size that fits the device, by doubling and bisection.

    None when not even one sample fits. Raises UsageError for a target whose memory does not depend
    on the batch size.
    """
    best: Prediction | None = None
    least: Prediction | None = None
    size, failed = 1, LARGEST_BATCH_SIZE * 2
    while size < failed:
        prediction = predict(replace(request, batch_size=size), timeout_s)
        least = least or prediction
        if size == 2 and _needs(prediction) == _needs(least):
            _check_growth(request, least, timeout_s)
        if prediction.fits:
            best = prediction
        else:
            failed = size
        low = best.batch_size or 0 if best else 0
        if failed - low <= 1 or size >= LARGEST_BATCH_SIZE:
            break
        size = size * 2 if failed > LARGEST_BATCH_SIZE else (low + failed) // 2
    return best


def _check_growth(request: Request, least: Prediction, timeout_s: float) -> None:
    """Refuse a target that needs as much for many samples as for one."""
    many = predict(replace(request, batch_size=_MUST_DIFFER_AT), timeout_s)
    if _needs(many) == _needs(least):
        raise UsageError(
            f"{request.target}: needs the same memory for 1 and {_MUST_DIFFER_AT:,} samples; "
            "make the tensors of a step with as many rows as its parameter batch_size says"
        )


def _needs(prediction: Prediction) -> tuple[int, dict[str, int]]:
    return prediction.peak_allocated_bytes, prediction.phase_peaks


def _check(request: Request) -> None:
    profile(request.device)
    if request.policy not in POLICIES:
        raise UsageError(f'no policy "{request.policy}"; known are {", ".join(POLICIES)}')
    place, colon, function = request.target.rpartition(":")
    if not (colon and function.isidentifier()):
        place = request.target
    elif not place.endswith(".py"):
        return
    if not Path(place).is_file():
        raise UsageError(f"{place}: there is no such file")
    if place == request.target and request.batch_size is not None:
        raise UsageError(
            f"{place}: a script takes no batch size; name a function with the parameter batch_size "
            f"that makes or returns a step, such as {place}:build with "
            "`def build(device, batch_size)`, or hand the script an option of its own after --"
        )


def _ask(request: Request, timeout_s: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="leakcheck-") as folder:
        question, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        question.write_bytes(msgspec.json.encode(request))
        package = str(Path(__file__).parents[2])
        try:
            done = subprocess.run(
                [sys.executable, "-c", _WORKER, package, str(question), str(answer)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LeakcheckError(
                f"{request.target}: no prediction within {timeout_s:g} s; allow more with --timeout"
            ) from None
        if answer.is_file():
            told: dict[str, object] = msgspec.json.decode(answer.read_bytes())
            if told.get("printed"):
                told["error"] = f"{told['error']}: {_last_line(done.stderr)}"
            return told
        ended = f"{request.target}: {_ending(done.returncode)}: {_last_line(done.stderr)}"
        return {"error": ended, "retry": not request.on_cpu}


def _ending(status: int) -> str:
    if status < 0 and -status in set(signal.Signals):
        return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


def _last_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines() or ["no message"]
    return lines[-1].strip()[:300]
