"""A Hugging Face callback: `Trainer(callbacks=[LeakcheckCallback()])`; a step is an update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakcheck.integrations.loop import LoopWatch
from leakcheck.model import Report

if TYPE_CHECKING:
    TrainerCallback = Any
else:
    from transformers import TrainerCallback


class LeakcheckCallback(TrainerCallback):  # type: ignore[misc]
    """Watches `train` and tells on standard error what leaks; options as of `LoopWatch`."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._watch: LoopWatch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start to watch."""
        self._watch = LoopWatch(**self._options)
        self._watch.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count a step."""
        if self._watch is not None:
            self._watch.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Judge."""
        if self._watch is not None:
            self._watch.end()

    def report(self) -> Report:
        """Return what is known now; empty before training."""
        return self._watch.report() if self._watch is not None else Report()
