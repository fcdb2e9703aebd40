"""Whole programs whose tensors are counted as a device's: verdicts are as right as on the host.

Most of these were misjudged on a real device, where the heap does not show what tensors do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forks import Forks, forks

pytest.importorskip("torch")
HERE = Path(__file__).parent
STAND_IN = HERE / "stand_in"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("cc"), reason="cc is not installed"),
]
Told = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, where what is installed lies: it is no part of the program."""
    folder = tmp_path_factory.mktemp("device") / "site-packages"
    folder.mkdir()
    shutil.copy(STAND_IN / "run.py", folder)
    source, made = str(STAND_IN / "device.c"), str(folder / "device.so")
    flags = ["-O2", "-shared", "-fPIC", "-o", made, source, "-ldl", "-lpthread"]
    subprocess.run(["cc", *flags], check=True)
    return folder


@pytest.fixture(scope="session")
def preloaded(installed: Path) -> Iterator[Forks]:
    """Processes in which tensors are the stand-in's."""
    variables = {"LD_PRELOAD": str(installed / "device.so"), "OMP_NUM_THREADS": "1"}
    with forks(variables) as started:
        yield started


@pytest.fixture
def on_the_device(installed: Path, preloaded: Forks, tmp_path: Path) -> Told:
    def run(program: str) -> dict[str, Any]:
        target = tmp_path / "report.json"
        path = HERE / "programs" / f"{program}.py"
        command = [preloaded.python, str(installed / "run.py"), "run", "--json", str(target)]
        done = subprocess.run(
            [*command, str(path)],
            cwd=tmp_path,
            env=preloaded.environment,
            capture_output=True,
            text=True,
        )
        assert target.is_file(), done.stderr
        report: dict[str, Any] = json.loads(target.read_text())
        return report

    return run


@pytest.mark.parametrize(
    "program",
    [
        "longer_batches",  # the larger batch is not the one before made longer
        "limited_cache",
        "predictions_for_later",
        "sum_tree",
        "context_cycle",  # its garbage is on the device
        "classifier",
    ],
)
def test_a_clean_program_is_steady_on_a_device(program: str, on_the_device: Told):
    report = on_the_device(f"clean/{program}")

    assert (report["verdict"], report["suspects"]) == ("steady", []), report["reason"]


@pytest.mark.parametrize(
    ("program", "holder", "line", "bytes_per_step"),
    [
        ("buffer_of_module", "attribute `Contrast.bank`, from local `model` in main()", 22, 8192),
        ("outputs", "local `outputs` in main()", 24, 512),
        ("sparse_counts", "attribute `Counts.seen`, from local `counts` in main()", 24, 2912),
        ("waiting_tasks", "local `metrics` in upload()", 30, 2048),
        ("never_reset", "attribute `Meter.losses`, from local `meter` in main()", 21, 512),
    ],
)
def test_a_leak_is_named_on_a_device_and_its_bytes_are_the_devices(
    program: str, holder: str, line: int, bytes_per_step: float, on_the_device: Told
):
    report = on_the_device(f"leaking/{program}")

    suspect = report["suspects"][0]
    (allocated,) = (t for t in report["trends"] if t["resource"] == "cuda:0.allocated")
    assert report["verdict"] == "growing"
    assert suspect["holder"] == holder
    assert suspect["locations"][0]["line"] == line
    assert allocated["verdict"] == "growing"
    assert allocated["per_step"] == pytest.approx(bytes_per_step, rel=0.05)
