"""Accelerate: watch the loader, send the rates through `accelerator.log`.

for batch in watch(accelerator, loader):
    ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from leakcheck.integrations.loop import LoopWatch

Item = TypeVar("Item")


def watch(accelerator: Any, loop: Iterable[Item], **options: Any) -> Iterator[Item]:
    """Yield the items of a prepared loader, each a step; options as of `LoopWatch`.

    The rates are logged through the accelerator's trackers unless a tracker is given.
    """

    def to_trackers(name: str, value: float, step: int) -> None:
        accelerator.log({name: value}, step=step)

    loop_watch = LoopWatch(**{"tracker": to_trackers, **options})
    loop_watch.begin()
    try:
        for item in loop:
            yield item
            del item
            loop_watch.step()
    finally:
        loop_watch.end()
