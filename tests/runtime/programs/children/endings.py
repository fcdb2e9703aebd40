"""Children that train and end in some way: the first argument says how, the second how they begin.

One that fails waits until the others have trained, so that the output is the same each time.
"""

import multiprocessing
import os
import signal
import sys
import threading

import torch
import torch.multiprocessing as mp
from torch import nn


def train(number):
    torch.set_num_threads(1)
    torch.manual_seed(number)
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(60):
        loss = model(torch.randn(8, 20)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(number, loss.item(), flush=True)


def raises(number):
    train(number)
    raise ValueError(f"of process {number}")


def killed(number):
    train(number)
    os.kill(os.getpid(), signal.SIGKILL)


def leaves(number):
    train(number)
    os._exit(3)


def exits(number):
    train(number)
    sys.exit("that is all")


def terminated(number):
    train(number)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    os.kill(os.getpid(), signal.SIGTERM)


def interrupted(number):
    train(number)
    raise KeyboardInterrupt


def nested(number):
    train(number)
    child = multiprocessing.Process(target=train, args=(number + 10,))
    child.start()
    child.join()
    print(child.name, child.exitcode, flush=True)


def in_thread(number):
    threading.Thread(target=train, args=(number,)).start()


def waits(number, trained):
    train(number)
    trained.set()
    threading.Event().wait()


class Own(mp.Process):
    def run(self):
        train(5)
        raise KeyError("of a class of its own")


def each_alone(context, function):
    for number in range(2):
        child = context.Process(target=function, args=(number,))
        child.start()
        child.join()
        print(child.name, child.exitcode, flush=True)


def main(how, method):
    mp.set_start_method(method)
    context = mp.get_context(method)
    if how == "process_raises":
        mp.start_processes(raises, nprocs=1, start_method=method)
    elif how == "process_killed":
        mp.start_processes(killed, nprocs=1, start_method=method)
    elif how == "daemon":
        trained = context.Event()
        context.Process(target=waits, args=(0, trained), daemon=True).start()
        trained.wait()
    elif how == "not_joined":
        context.Process(target=train, args=(0,)).start()
    elif how == "own_class":
        child = Own()
        child.start()
        child.join()
        print(child.name, child.exitcode)
    elif how == "cannot_be_pickled":
        child = context.Process(target=lambda: train(0))
        child.start()
        child.join()
    elif how == "one_task_each":
        with context.Pool(1, maxtasksperchild=1) as pool:
            pool.map(train, range(3), chunksize=1)
            pool.close()
            pool.join()
    else:
        each_alone(context, globals()[how])


if __name__ == "__main__":
    main(*sys.argv[1:3])
