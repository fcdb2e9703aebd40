"""What has to be released is found where it is not, whatever it is; released, nothing is said."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source


class Resource(NamedTuple):
    imports: str
    make: str
    use: str
    release: str


RESOURCES = {
    "file": Resource("", "open(path)", "{}.read()", "{}.close()"),
    "gzip": Resource("import gzip", "gzip.open(path)", "{}.read()", "{}.close()"),
    "h5": Resource("import h5py", "h5py.File(path)", "{}['x'][:]", "{}.close()"),
    "zip": Resource("import zipfile", "zipfile.ZipFile(path)", "{}.namelist()", "{}.close()"),
    "descriptor": Resource("import os", "os.open(path, 0)", "os.read({}, 10)", "os.close({})"),
    "container": Resource("import av", "av.open(path)", "list({}.decode())", "{}.close()"),
    "video": Resource("import cv2", "cv2.VideoCapture(path)", "{}.read()", "{}.release()"),
    "movie": Resource("import imageio", "imageio.get_writer(path)", "{}.flush()", "{}.close()"),
    "events": Resource(
        "from torch.utils.tensorboard import SummaryWriter",
        "SummaryWriter(path)",
        "{}.add_scalar('loss', 1.0, 0)",
        "{}.close()",
    ),
    "figure": Resource(
        "import matplotlib.pyplot as plt", "plt.figure()", "{}.savefig(path)", "plt.close({})"
    ),
    "child": Resource("import subprocess", "subprocess.Popen([path])", "{}.poll", "{}.wait()"),
    "pool": Resource(
        "import multiprocessing", "multiprocessing.Pool(4)", "{}.map(str, 'abc')", "{}.terminate()"
    ),
    "executor": Resource(
        "from concurrent.futures import ThreadPoolExecutor",
        "ThreadPoolExecutor(4)",
        "list({}.map(str, 'abc'))",
        "{}.shutdown()",
    ),
    "manager": Resource(
        "import multiprocessing", "multiprocessing.Manager()", "{}.dict()", "{}.shutdown()"
    ),
    "loop": Resource("import asyncio", "asyncio.new_event_loop()", "{}.time()", "{}.close()"),
    "socket": Resource("import socket", "socket.socket()", "{}.send(b'x')", "{}.close()"),
    "database": Resource("import sqlite3", "sqlite3.connect(path)", "{}.commit()", "{}.close()"),
    "pages": Resource("import mmap", "mmap.mmap(-1, 4096)", "{}.read(10)", "{}.close()"),
    "keys": Resource("import lmdb", "lmdb.open(path)", "{}.begin()", "{}.close()"),
    "session": Resource("import requests", "requests.Session()", "{}.get(path)", "{}.close()"),
    "block": Resource(
        "from multiprocessing import shared_memory",
        "shared_memory.SharedMemory(path)",
        "bytes({}.buf)",
        "{}.close()",
    ),
    "environments": Resource(
        "import gymnasium as gym", "gym.vector.AsyncVectorEnv([path])", "{}.reset()", "{}.close()"
    ),
    "hook": Resource("", "model.register_forward_hook(print)", "model(path)", "{}.remove()"),
}
IN_LOOP = """
def run(model, paths):
    for epoch in range(100):
        for path in paths:
            {name} = {make}
            try:
                {use}
            finally:
{release}
"""
IN_OWNER = """
class Owner:
    def __init__(self, model, path):
        self.resource = {make}
        self.log = open(path + ".log", "w")

    def read(self, model, path):
        {use}

    def close(self):
        self.log.close()
{release}
"""
IN_METHOD = """
class Owner:
    def __init__(self, model, path):
        self.resource = {make}

    def on_epoch_start(self, model, path):
{release}
        self.resource = {make}

    def read(self, model, path):
        {use}
"""
# what the last reference ends, and what a run of a loop may do without
FREED_WHEN_DROPPED = {
    *("video", "movie", "child", "manager", "socket", "database", "pages", "keys", "session"),
    *("block", "environments"),
}
# given to a function, which may close it
GIVEN_AWAY = {"descriptor"}


def written(form: str, resource: Resource, name: str, *, indent: int, released: bool) -> str:
    release = " " * indent + (resource.release.format(name) if released else "pass")
    body = form.format(
        name=name, make=resource.make, use=resource.use.format(name), release=release
    )
    return f"import torch\n{resource.imports}\n{body}"


def found(source: str) -> set[str]:
    return {finding.rule for finding in check_source(source, "a.py", registry.builtin_rules())}


@pytest.mark.parametrize("name", sorted(RESOURCES.keys() - FREED_WHEN_DROPPED))
def test_what_each_turn_of_a_loop_leaves_open_is_found(name):
    resource = RESOURCES[name]

    assert found(written(IN_LOOP, resource, "resource", indent=16, released=False))
    assert not found(written(IN_LOOP, resource, "resource", indent=16, released=True))


@pytest.mark.parametrize("name", sorted(RESOURCES.keys() - GIVEN_AWAY))
def test_what_a_closing_method_forgets_is_found(name):
    resource = RESOURCES[name]

    assert "resource-left-by-owner" in found(
        written(IN_OWNER, resource, "self.resource", indent=8, released=False)
    )
    assert not found(written(IN_OWNER, resource, "self.resource", indent=8, released=True))


@pytest.mark.parametrize("name", sorted(RESOURCES.keys() - {"manager"}))
def test_what_is_opened_anew_while_the_one_before_is_open_is_found(name):
    resource = RESOURCES[name]

    assert "overwritten-while-open" in found(
        written(IN_METHOD, resource, "self.resource", indent=8, released=False)
    )
    assert "overwritten-while-open" not in found(
        written(IN_METHOD, resource, "self.resource", indent=8, released=True)
    )


def test_a_hook_of_a_model_that_the_owner_makes_ends_with_that_model():
    source = written(
        IN_METHOD, RESOURCES["hook"], "self.resource", indent=8, released=False
    ).replace("        pass\n", "        model = torch.nn.Linear(2, 2)\n")

    assert not found(source)


def test_a_figure_with_a_number_is_the_same_each_time():
    figure = RESOURCES["figure"]._replace(make="plt.figure(1)")

    assert not found(written(IN_METHOD, figure, "self.resource", indent=8, released=False))


OWNER = """
import tarfile


class Writer:
    def __init__(self, path):
        self.stream = open(path, "wb")
        self.archive = tarfile.open(path + ".tar", "w")

    def close(self):
        self.archive.close()


class Other{bases}:
    def begin(self, path):
        {begins}

    def end(self):
        self.stream.close()
"""


@pytest.mark.parametrize(
    ("bases", "begins", "forgotten"),
    [
        ("", 'self.stream = open(path, "wb")', True),  # it closes a stream of its own
        ("(Writer)", 'self.stream = open(path, "wb")', False),  # an object of the very class
        ("", "pass", False),  # it may be a part of one
    ],
)
def test_another_class_closes_what_it_has_itself(bases, begins, forgotten):
    source = OWNER.format(bases=bases, begins=begins)

    assert ("resource-left-by-owner" in found(source)) is forgotten
