"""Near misses are unmarked."""

import asyncio
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import click
import torch
from torch.utils.tensorboard import SummaryWriter


def work(x):
    return x


def register(pool):
    pools.append(pool)


pools = []


def lost(items):
    executor = ThreadPoolExecutor(2)  # leak: workers-never-ended
    futures = [executor.submit(work, item) for item in items]
    return [future.result() for future in futures]


def shut_down(items):
    executor = ThreadPoolExecutor(2)
    try:
        return list(executor.map(work, items))
    finally:
        executor.shutdown()


def managed(items):
    executor = ThreadPoolExecutor(2)
    with executor:
        return list(executor.map(work, items))


def handed_back():
    return ThreadPoolExecutor(2)


def handed_on(register):
    executor = ThreadPoolExecutor(2)
    register(executor)


def ended_by_a_nested_function(items):
    pool = multiprocessing.Pool(2)

    def end():
        pool.terminate()

    return pool.imap(work, items), end


def stopped_and_never_closed(task):
    loop = asyncio.new_event_loop()  # leak: workers-never-ended
    asyncio.set_event_loop(loop)
    result = loop.run_until_complete(task)
    loop.stop()
    return result


def closed(task):
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(task)
    finally:
        loop.close()


def proxy_leaves(items):
    manager = multiprocessing.Manager()  # leak: workers-never-ended
    results = manager.list()
    for item in items:
        results.append(work(item))
    return results


def proxy_stays(items):
    manager = multiprocessing.Manager()
    results = manager.list()
    for item in items:
        results.append(work(item))
    return list(results)


def one_of_two_proxies_leaves(items):
    manager = multiprocessing.Manager()  # leak: workers-never-ended
    results, notes = manager.list(), manager.list()
    results.append(work(items[0]))
    return results[0], notes


def what_a_proxy_has_leaves(items):
    manager = multiprocessing.Manager()
    results, notes = manager.list(), manager.list()
    results.append(work(items[0]))
    return results[0], len(notes)


class Server:
    def __init__(self):
        self.pool = multiprocessing.Pool(2)

    def restart(self):
        self.pool.terminate()
        self.pool = multiprocessing.Pool(2)


class Inferencer:
    def __init__(self):
        self.workers = multiprocessing.Pool(2)  # leak: workers-never-ended

    def infer(self, items):
        return self.workers.map(work, items)


class Borrower:
    def __init__(self, items):
        self.crew = multiprocessing.Pool(2)
        register(self.crew)


class Images:
    def __init__(self, files):
        self.images = list(ThreadPool(8).imap(work, files))  # leak: workers-never-ended


shared = None


def make_shared():
    global shared
    shared = ThreadPoolExecutor(2)


def train(log, steps):
    for step in range(steps):
        log.add_scalar("loss", step, step)


def finish(log):
    log.close()


def ensemble(paths):
    for path in paths:
        writer = SummaryWriter(path)  # leak: workers-never-ended
        train(writer, 3)


@click.command()
def from_the_command_line(path):
    writer = SummaryWriter(path)
    train(writer, 3)


def in_each_process(rank):
    writer = SummaryWriter(rank)
    train(writer, 3)


def start(ranks):
    torch.multiprocessing.spawn(in_each_process, ranks)


writers = {}


def shared_writer(path):
    writer = SummaryWriter(path)
    writers[path] = {"writer": writer}


def fit(model, path):
    model.fit()
    writer = SummaryWriter(path)
    train(writer, 3)


def ensemble_that_closes(paths):
    for path in paths:
        writer = SummaryWriter(path)
        train(writer, 3)
        finish(writer)


def new_writer(path):
    writer = SummaryWriter(path)
    writer.add_text("path", path)
    return writer


def the_writer(path):
    if path not in writers:
        writer = SummaryWriter(path)
        writers[path] = writer
        return writer
    return writers[path]


def write(path, values):
    made = new_writer(path)  # leak: workers-never-ended
    kept = the_writer(path)
    for step, value in enumerate(values):
        made.add_scalar("value", value, step)
        kept.add_scalar("value", value, step)


def write_and_close(path, values):
    made = new_writer(path)
    made.add_scalar("value", values[0], 0)
    made.close()


def results_of_a_process(work):
    manager = multiprocessing.Manager()  # ends with its last proxy
    results = manager.list()
    process = multiprocessing.Process(target=work, args=(results,))
    process.start()
    process.join()
    return results[0]


def proxy_of_a_process(work):
    manager = multiprocessing.Manager()  # leak: workers-never-ended
    results = manager.list()
    process = multiprocessing.Process(target=work, args=(results,))
    process.start()
    process.join()
    return results


class Environments:
    def __init__(self, work, count):
        self.processes = [multiprocessing.Process(target=work) for _ in range(count)]
        for process in self.processes:
            process.start()

    def step(self, actions):
        return actions

    def close(self):
        for process in self.processes:
            process.join()


def new_environments(work):
    return Environments(work, 2)


def evaluate_often(work, policy, epochs):
    environments = new_environments(work)
    for epoch in range(epochs):
        environments.step(policy(epoch))
        tried = new_environments(work)  # leak: workers-never-ended
        tried.step(policy(epoch))
        direct = Environments(work, 2)  # leak: workers-never-ended
        direct.step(policy(epoch))
        ended = new_environments(work)
        ended.step(policy(epoch))
        ended.close()
        handed = new_environments(work)
        policy.try_on(handed)
    environments.close()


if __name__ == "__main__":
    fit(work, "runs")
    ThreadPoolExecutor(2).submit(work, 1)
