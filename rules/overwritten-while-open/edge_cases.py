"""Near misses are unmarked."""

import os
import threading

import filelock
import torch


class Lock:
    def acquire(self, path):
        self.file = os.open(path, os.O_RDWR)  # leak: overwritten-while-open

    def run(self, path):
        self.only = os.open(path, os.O_RDWR)  # what an object is made for

    def close(self):
        os.close(self.file)
        os.close(self.only)


class WithinACall:
    def __call__(self, path):
        self.file = os.open(path, os.O_RDWR)
        try:
            return os.read(self.file, 1)
        finally:
            os.close(self.file)

    def acquire(self, path):
        self.other = os.open(path, os.O_RDWR)  # leak: overwritten-while-open
        try:
            return os.read(self.other, 1)
        finally:
            os.fsync(self.other)

    def close(self):
        os.close(self.other)


class Below(filelock.BaseFileLock):
    """The base calls `_acquire` while nothing is held, and `_release` before it does so again."""

    def _acquire(self):
        self.file = os.open(self.path, os.O_RDWR)

    def _release(self):
        os.close(self.file)


class CallsItself(filelock.BaseFileLock):
    def _lock_again(self):
        self.file = os.open(self.path, os.O_RDWR)  # leak: overwritten-while-open

    def step(self):
        self._lock_again()
        return torch.zeros(1)

    def close(self):
        os.close(self.file)


class Served:
    def start(self):
        self.thread = threading.Thread(target=self._process)
        self.thread.start()

    def _process(self):
        self.file = os.open(self.path, os.O_RDWR)  # once, as the thread begins

    def process(self):
        self.log = os.open(self.path, os.O_RDWR)  # leak: overwritten-while-open

    def close(self):
        os.close(self.file)
        os.close(self.log)
