"""Near misses are unmarked."""

import os

import av
import numpy as np


def frames(path):
    container = av.open(path)  # leak: unclosed-handle
    return np.stack([frame.to_ndarray() for frame in container.decode(video=0)])


def by_helper(path):
    container = av.open(path)  # leak: unclosed-handle
    return decode(container)


def decode(container):
    return [frame.to_ndarray() for frame in container.decode(video=0)]


def with_block(path):
    with av.open(path) as container:
        return decode(container)


def returned(path):
    container = av.open(path)
    return container


def closed_by_helper(path):
    container = av.open(path)
    finish(container)


def finish(container):
    container.close()


def handed_on(path, reader):
    container = av.open(path)
    return reader(container)


def wrapped(path):
    descriptor = os.open(path, os.O_RDONLY)
    return os.fdopen(descriptor)


class Locked:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR)

    def forget(self):
        self.fd = -1  # leak: unclosed-handle

    def close(self):
        os.close(self.fd)
        self.fd = -1


INVALID = -1


class Marked:
    def __init__(self, path):
        self.direct = os.open(path, os.O_RDWR)

    def reopen(self, path):
        os.close(self.direct)
        self.direct = os.open(path, os.O_RDWR)

    def finish(self):
        self.direct = INVALID  # leak: unclosed-handle


class MarkedOnceClosed:
    def __init__(self, path):
        self.raw = os.open(path, os.O_RDWR)

    def finish(self):
        os.close(self.raw)
        self.raw = INVALID


def container_of(path, options):
    return av.open(path, options=options)


def first_frame(path):
    container = container_of(path, {})  # leak: unclosed-handle
    return next(container.decode(video=0)).to_ndarray()


def first_frame_only(path):
    container = container_of(path, {})
    frame = next(container.decode(video=0)).to_ndarray()
    container.close()
    return frame
