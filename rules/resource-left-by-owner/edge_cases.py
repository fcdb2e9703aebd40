"""Near misses are unmarked."""

import sys
import multiprocessing
import sqlite3
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
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


class StartedAndStopped:
    """What is stopped may be started again, with the executor it has."""

    def __init__(self):
        self.executor = ThreadPoolExecutor()

    def start(self):
        self.running = True

    def stop(self):
        self.running = False


class OnlyStopped:
    def __init__(self):
        self.threads = ThreadPoolExecutor()  # leak: resource-left-by-owner

    def stop(self):
        self.running = False


class OpenedAtEachStart:
    def start(self):
        self.workers = ThreadPoolExecutor()  # leak: resource-left-by-owner

    def stop(self):
        self.running = False


class MadeWhenNeeded:
    def __init__(self):
        self.lazy = None

    def submit(self, job):
        if self.lazy is None:
            self.lazy = ThreadPoolExecutor()
        self.lazy.submit(job)

    def finish(self):
        self.wait()


class ClosedByItsFinalizer:
    def __init__(self, path):
        self.log_file = open(path)
        weakref.finalize(self, self.log_file.close)

    def close(self):
        self.ready = False


class HasAnotherFinalizer:
    def __init__(self, path):
        self.text_file = open(path)  # leak: resource-left-by-owner
        weakref.finalize(self, print, path)

    def close(self):
        self.ready = False


class RemovedWithItsOwner:
    def __init__(self):
        self.folder = TemporaryDirectory()

    def finalize(self):
        self.done = True


class ToldToStop:
    def start(self):
        self.event = multiprocessing.Event()
        self.sender = multiprocessing.Process(target=self.run_sender, args=(self.event, 1))
        self.sender.start()

    def stop(self):
        self.event.set()

    def asked(self, event):
        return event.is_set()

    def run_sender(self, event, queue):
        while True:
            if self.asked(event):
                break
            time.sleep(0.1)


class ToldLate:
    def start(self):
        self.event = multiprocessing.Event()
        self.sender = multiprocessing.Process(  # leak: resource-left-by-owner
            target=self.run_late, args=(self.event, 1)
        )
        self.sender.start()

    def stop(self):
        self.event.set()

    def run_late(self, event, queue):
        while not event.is_set():
            queue.login()
            time.sleep(15)


class ClosedByAnotherName:
    def __init__(self, path):
        if isinstance(path, str):
            path = open(path, "wb")
            self.own_file = path
        else:
            self.own_file = None
        self.stream = path

    def close(self):
        if self.own_file is not None:
            self.own_file.close()


class HasAnotherName:
    def __init__(self, path):
        file = open(path, "wb")
        self.name = file.name
        self.stream = file  # leak: resource-left-by-owner

    def close(self):
        print(self.name)


class FlushesAnothers:
    def __init__(self, path, log):
        self.log = log
        self.started = now(path)

    def close(self):
        self.log.flush()


class Component:
    def destroy(self):
        for name in list(self.__dict__):
            delattr(self, name)


class Linker(Component):
    def load(self, path):
        self.connection = sqlite3.connect(path)  # goes with its attribute
        self.timer = multiprocessing.Process(target=print)  # leak: resource-left-by-owner
        self.timer.start()


class Forgetful:
    def destroy(self):
        delattr(self, "path")

    def load(self, path):
        self.path = path
        self.connection = sqlite3.connect(path)  # leak: resource-left-by-owner


class Renderer:
    def draw(self, image):
        self.figure = plt.figure()
        self.figure.gca().imshow(image)

    def close(self):
        plt.ioff()
        plt.close()


class OtherRenderer:
    def draw(self, image):
        self.figure = plt.figure()  # leak: resource-left-by-owner
        self.figure.gca().imshow(image)

    def close(self):
        plt.ioff()


class ClosedInTurn:
    def __init__(self, path):
        self.first = sqlite3.connect(path)
        self.second = sqlite3.connect(path)

    def close(self):
        for connection in (self.first, self.second):
            connection.close()


class ClosedInTurnButOne:
    def __init__(self, path):
        self.first = sqlite3.connect(path)
        self.second = sqlite3.connect(path)  # leak: resource-left-by-owner

    def close(self):
        for connection in (self.first, None):
            if connection is not None:
                connection.close()


class ClosedByItsMethod:
    def __init__(self, path, safely):
        self.connection = sqlite3.connect(path)
        self.other = sqlite3.connect(path)  # leak: resource-left-by-owner
        self.safely = safely

    def close(self):
        self.safely(self.connection.close)
        self.safely(self.other.commit)
