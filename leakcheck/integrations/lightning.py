"""A Lightning callback: `Trainer(callbacks=[LeakcheckCallback()])`; a step is a training batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakcheck.integrations.loop import LoopWatch
from leakcheck.model import Report

if TYPE_CHECKING:
    Callback = Any
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class LeakcheckCallback(Callback):  # type: ignore[misc]
    """Watches `fit` and tells on standard error what leaks; options as of `LoopWatch`.

    Rates go to the trainer's own loggers unless a tracker is given.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self._watch: LoopWatch | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start to watch when the first epoch begins."""

        def to_loggers(name: str, value: float, step: int) -> None:
            for logger in trainer.loggers:
                logger.log_metrics({name: value}, step)

        self._watch = LoopWatch(**{"tracker": to_loggers, **self._options})
        self._watch.begin()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a step."""
        if self._watch is not None:
            self._watch.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Judge."""
        if self._watch is not None:
            self._watch.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Judge what was seen until training failed, e.g. because memory was exhausted."""
        if self._watch is not None:
            self._watch.end(cut_short=True)

    def report(self) -> Report:
        """Return what is known now; empty before training."""
        return self._watch.report() if self._watch is not None else Report()
