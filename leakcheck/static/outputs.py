"""What a model gives back beside its loss: counts and accuracies have no graph to keep."""

from __future__ import annotations

from leakcheck.source.words import says


def is_counted(name: object) -> bool:
    """Whether a name says that its value was counted: "num_samples", "n", "train_acc"."""
    return isinstance(name, str) and says(name.rpartition(".")[2], "counted")
