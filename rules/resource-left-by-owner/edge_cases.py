"""Near misses are unmarked."""

import sys

from torch.utils.tensorboard import SummaryWriter


class OnlyFlushes:
    def __init__(self, path):
        self.records = make_records(path)

    def close(self):
        self.flush()  # leak: resource-left-by-owner

    def flush(self):
        self.records.flush()


class FlushesAndCloses:
    def __init__(self, path):
        self.records = make_records(path)

    def close(self):
        self.records.flush()
        self.records.close()


class Console:
    def __init__(self):
        self.name = str(1)

    def close(self):
        sys.stdout.flush()


class Forgets:
    def __init__(self, path):
        self.writer = SummaryWriter(path)  # leak: resource-left-by-owner
        self.file = open(path)

    def close(self):
        self.file.close()


class Another:
    def __init__(self, path):
        self.writer = SummaryWriter(path)

    def close(self):
        self.writer.close()


class Logger:
    def __init__(self, path):
        self._writer = None
        self.path = path

    @property
    def experiment(self):
        if self._writer is None:
            self._writer = SummaryWriter(self.path)  # leak: resource-left-by-owner
        return self._writer

    def log(self, name, value):
        self.experiment.add_scalar(name, value)

    def finalize(self, status):
        self.experiment.flush()


class SavesItself:
    """A word in a pickled state is no attribute that somebody reaches by name."""

    def __init__(self, path):
        self.board = SummaryWriter(path)  # leak: resource-left-by-owner

    def __getstate__(self):
        state = self.__dict__.copy()
        state["board"] = None
        return state

    def finalize(self, status):
        self.board.flush()


class ReachedByName:
    def __init__(self, path):
        self.events = SummaryWriter(path)

    def finalize(self, status):
        getattr(self, "events").close()


class CannotBeClosed:
    def __init__(self, path):
        self.train_log = SummaryWriter(path)  # leak: resource-left-by-owner
        self.records = open(path)

    def log(self, name, value):
        self.train_log.add_scalar(name, value)


class ClosedByItsUser:
    def __init__(self, path):
        self.eval_log = SummaryWriter(path)


def evaluate(path):
    owner = ClosedByItsUser(path)
    owner.eval_log.close()
