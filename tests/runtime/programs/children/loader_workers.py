"""Workers of a DataLoader say what of a watch they see; the training is the main process's."""

import gc
import sys
import threading
from multiprocessing import util

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.full((20,), float(index)), traces_of_a_watch() if index == 255 else 0


def traces_of_a_watch():
    callbacks = sum("leakcheck" in getattr(each, "__module__", "") for each in gc.callbacks)
    finalizers = len(util._finalizer_registry)
    spawned = sys.argv[1] == "spawn"
    modules = sum(name.partition(".")[0] == "leakcheck" for name in sys.modules) if spawned else 0
    return callbacks + finalizers + modules + (sys.gettrace() is not None)


def main(method):
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for _ in range(2):
        seen = 0
        loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context=method)
        for batch, traces in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += int(traces.sum())
        print("seen of a watch:", seen)
    wait_for_feeders()


def wait_for_feeders():
    """Each unlinks the semaphores of its queue; ended halfway, CPython warns, watched or not."""
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
