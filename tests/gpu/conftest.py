from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="session")
def loops() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_loops", BENCHMARKS / "gpu_loops.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_loops"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Run one section of the capture in a process of its own, once a session."""
    folder = tmp_path_factory.mktemp("gpu")

    def capture(section: str) -> Path:
        found = sorted(folder.glob(f"{section}.json*"))
        if not found:
            script = BENCHMARKS / "gpu_capture.py"
            command = [sys.executable, str(script), "--only", section, "--out", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180)
            assert done.returncode == 0, done.stdout + done.stderr
            found = sorted(folder.glob(f"{section}.json*"))
        return found[0]

    return capture


@pytest.fixture
def told(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """Run a program that prints one JSON object on its last line."""

    def run(program: str) -> dict[str, Any]:
        path = tmp_path / "program.py"
        path.write_text(program)
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        if kept := os.environ.get("LEAKCHECK_GPU_ANSWERS"):  # what each program answered, as data
            with Path(kept).open("a") as file:
                file.write(json.dumps({"test": request.node.name, "answer": answer}) + "\n")
        return answer

    return run
