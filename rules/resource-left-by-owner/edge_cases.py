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
