"""Near misses are unmarked."""

import sys

import torch

import_error = None
try:
    import missing_kernels
except ImportError as error:
    import_error = error  # leak: kept-exception

chained = None
try:
    import other_kernels
except ImportError as error:
    chained = error


def require():
    if chained is not None:
        raise RuntimeError("kernels are missing") from chained


class Worker:
    def run(self, job):
        last = None
        try:
            job(torch.zeros(1))
        except ValueError as error:
            last = error  # a local
            self.text = str(error)
            self.kind = type(error)
        except KeyError as error:
            self.failures.append((job, error))  # leak: kept-exception
        except OSError as error:
            self.raised_later = error
        except TypeError as error:
            self.bare = error.with_traceback(None)
        return last

    failures = []

    def join(self):
        if self.raised_later is not None:
            raise self.raised_later


records = []
reports = []


def record():
    _, error, trace = sys.exc_info()
    records.append((error, trace))  # leak: kept-exception
    if len(records) > 5:
        records.pop(0)


def report():
    _, error, _ = sys.exc_info()
    reports.append(str(error))


drained = []


def remember():
    error = sys.exc_info()[1]
    drained.append(error)


def remember_all():
    _, error, _ = sys.exc_info()
    drained.append(error)


def drain():
    while drained:
        print(drained.pop())


class Fallback:
    def setup(self, build):
        try:
            self.catalog = build()
        except ValueError as error:
            self.first_error = error  # raised below, if it is told at all

    def use(self):
        try:
            return self.catalog.get()
        except AttributeError as error:
            raise (self.first_error or error) from None


window_error = None
try:
    import missing_windows
except ImportError as error:
    window_error = error  # leak: kept-exception
except Exception as error:
    window_error = error  # this module is not imported then
    raise
