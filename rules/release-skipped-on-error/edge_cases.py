"""Near misses are unmarked."""

import contextlib
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import matplotlib.pyplot as plt
from tqdm import tqdm


@contextmanager
def opened(path):
    need_close = isinstance(path, str)
    file = open(path, "rb") if need_close else path
    yield file
    if need_close:
        file.close()


@contextlib.contextmanager
def opened_here(path, text):
    if text:
        file = open(path)
    else:
        file = open(path, "rb")
    yield file  # leak: release-skipped-on-error
    file.close()


@contextmanager
def closed_behind_a_return(path, lock):
    file = open(path)
    if lock is None:
        yield None  # what follows is of the other case
        return
    try:
        yield file
    finally:
        file.close()


@contextmanager
def opened_for_two(path, both):
    file = open(path)
    if both:
        yield file  # leak: release-skipped-on-error
    file.close()


@contextmanager
def closed_in_any_case(path):
    file = open(path)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def closed_by_its_block(path):
    with open(path) as file:
        yield file
    print("closed")


@contextmanager
def workers(server):
    manager, processes = server.launch(2)
    yield server  # leak: release-skipped-on-error
    for process in processes:
        process.terminate()
    manager.shutdown()


@contextmanager
def borrowed(server):
    yield server
    server.shutdown()


@contextmanager
def switched(model):
    was_training = model.training
    model.eval()
    yield model
    model.train(was_training)


@contextmanager
def told(items):
    bar = tqdm(items)
    yield bar
    bar.close()


@contextmanager
def drawn():
    figure = plt.figure()
    yield figure  # leak: release-skipped-on-error
    plt.close(figure)


@contextmanager
def one_or_the_other(path, ready):
    file = open(path)
    if ready:
        yield file
    else:
        file.close()


@asynccontextmanager
async def connected(session):
    client = await session.connect()
    yield client  # leak: release-skipped-on-error
    await client.aclose()


@asynccontextmanager
async def lifespan(app):
    pool = ProcessPoolExecutor()
    app.pool = pool
    yield
    pool.shutdown()


def read(path):
    file = open(path)
    yield from file
    file.close()
