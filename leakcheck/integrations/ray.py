"""Ray Train: record inside the worker function; `leakcheck report FOLDER` reads all ranks.

def train_loop_per_worker(config):
    with recorded_sentinel("/shared/leakcheck") as sentinel:
        for batch in loader:
            ...
            sentinel.step()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakcheck.proof import proved
from leakcheck.runtime.judgement.tolerance import DEFAULT_TOLERANCE_BYTES
from leakcheck.runtime.recording import Recorder
from leakcheck.runtime.sentinel import Sentinel


@contextmanager
def recorded_sentinel(folder: str | Path, **options: Any) -> Iterator[Sentinel]:
    """Watch this worker and write `folder/rank-<n>.jsonl`; options as of `Sentinel`.

    Call it in the worker function: the rank is the worker's, not the controller's.
    """
    from ray import train

    context = train.get_context()
    rank, world_size = context.get_world_rank(), context.get_world_size()
    tolerance_bytes = options.get("tolerance_bytes", DEFAULT_TOLERANCE_BYTES)
    recorder = Recorder.of_rank(Path(folder), "ray train worker", rank, world_size, tolerance_bytes)
    sentinel = Sentinel(recorder=recorder, **options).start()
    try:
        yield sentinel
    finally:
        sentinel.stop()
        recorder.finish(proved(sentinel.report()))
