"""A DataLoader tells when it begins anew, and is otherwise as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from leakcheck.runtime.clock.epochs import LoaderEpochs

ROWS = TensorDataset(torch.arange(12.0))


@pytest.fixture
def begun() -> Iterator[list[str]]:
    """Return what `epochs` noted; nobody listens any more afterwards."""
    yield []
    gc.collect()
    assert "_num_yielded" not in vars(_BaseDataLoaderIter)


def listening(begun: list[str]) -> LoaderEpochs:
    epochs = LoaderEpochs(lambda: begun.append("epoch"))
    epochs.listen()
    return epochs


def test_an_epoch_begins_when_the_loader_of_the_steps_does(begun):
    epochs = listening(begun)
    training = DataLoader(ROWS, batch_size=4)
    for _ in range(3):
        for _ in training:
            epochs.step()
    epochs.stop()

    assert begun == ["epoch", "epoch"]


def test_an_evaluation_within_an_epoch_is_none(begun):
    epochs = listening(begun)
    training = DataLoader(ROWS, batch_size=4)
    evaluation = DataLoader(TensorDataset(torch.zeros(8)), batch_size=4)
    for _ in training:
        epochs.step()
        assert len(list(evaluation)) == 2
    epochs.stop()

    assert begun == []


def test_a_loader_that_is_made_anew_for_each_epoch_begins_one(begun):
    epochs = listening(begun)
    for _ in range(3):
        for _ in DataLoader(ROWS, batch_size=4, shuffle=True):
            epochs.step()
    epochs.stop()

    assert begun == ["epoch", "epoch"]


def test_workers_that_stay_are_asked_too(begun):
    epochs = listening(begun)
    training = DataLoader(ROWS, batch_size=4, num_workers=1, persistent_workers=True)
    for _ in range(2):
        for _ in training:
            epochs.step()
    epochs.stop()

    assert begun == ["epoch"]


def test_the_count_of_an_iterator_is_as_it_would_be(begun):
    epochs = listening(begun)
    batches = iter(DataLoader(ROWS, batch_size=4))
    next(batches)
    assert batches._num_yielded == vars(batches)["_num_yielded"] == 1
    del batches._dataset  # what is asked of an iterator may be missing
    next(batches)
    epochs.stop()

    assert batches._num_yielded == 2
    with pytest.raises(AttributeError, match=r"_BaseDataLoaderIter.*_num_yielded"):
        object.__new__(_BaseDataLoaderIter)._num_yielded  # noqa: B018


def test_who_was_forgotten_does_not_listen(begun):
    listening(begun)
    gc.collect()
    epochs = listening(begun)
    training = DataLoader(ROWS, batch_size=4)
    for _ in training:
        epochs.step()
    list(training)
    epochs.stop()

    assert begun == ["epoch"]
