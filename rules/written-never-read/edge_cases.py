"""Near misses are unmarked."""

from abc import ABC
from ast import NodeVisitor

from torch.utils.data import Dataset


class Log:
    def __init__(self):
        self.lost = []
        self.read = []
        self.returned = []
        self.measured = []
        self.handed_on = {}
        self.emptied = []
        self.by_name = []
        self.named = {}
        self.grouped = {}
        self.count = 0

    def step(self, key, value):
        self.lost.append(value)  # leak: written-never-read
        self.read.append(value)
        self.returned.append(value)
        self.measured.append(value)
        self.handed_on[key] = value
        self.emptied.append(value)
        self.by_name.append(value)
        self.grouped.setdefault(key, []).append(value)
        self.count += 1

    def add_name(self, key, value):
        self.named[key] = value

    def report(self, write):
        write(self.handed_on)
        if len(self.measured) > 9:
            print(sum(self.read))
        self.emptied.clear()
        return getattr(self, "by_name"), self.returned


class Names(NodeVisitor):
    def __init__(self):
        self.found = []

    def visit_Name(self, node):
        self.found.append(node.id)


class Attack:
    def attack(self, steps):
        self.statistics = []
        for step in steps:
            self._note(step)

    def _note(self, step):
        self.statistics.append(step)


class Commander(ABC):
    """An abstract class of the standard library reads nothing; nor does another class's `lost`."""

    def __init__(self):
        self._episodes = []
        self.results = []

    def finish(self, episode):
        self._episodes.append(episode)  # leak: written-never-read
        self.results.append(episode)


class Samples(Dataset):
    def __init__(self):
        self._visited = []
        self.buffers_kept_alive = []

    def __getitem__(self, index):
        self._visited.append(index)  # leak: written-never-read
        self.buffers_kept_alive.append(index)
        return index


class ReadsItsOwn:
    def __init__(self):
        self._episodes = []

    def add(self, episode):
        self._episodes.append(episode)

    def newest(self):
        return self._episodes[-1]


class Patcher:
    def __init__(self):
        self.originals = {}
        self.patched = {}

    def patch(self, function):
        self.originals[id(function)] = function  # its id stays its own
        self.patched[id(function)] = wrapped = lambda: function()
        return self.patched[id(function)] and wrapped


class Fitted:
    def __init__(self):
        self.train_history = []
        self._train_history = []
        self.loss_dict = {}
        self.result_dict = {}
        self.flags = []
        self.outputs = []

    def train_step(self, model, batch):
        loss = model(batch).item()
        self.train_history.append((self.step, loss))  # public numbers, for others to read
        self._train_history.append(loss)  # leak: written-never-read
        self.outputs.append(model(batch))  # leak: written-never-read

    def epoch(self, number, results):
        self.loss_dict[number] = sum(results) if results else None
        self.flags.append(number is not None)
        self.result_dict[number] = sum(results) if results else None  # leak: written-never-read


class Clocks:
    class Timer:
        def __init__(self):
            self.events = []

        def stop(self, event):
            self.events.append(event)

        def reset(self):
            self.events.clear()


class NoClocks:
    class Timer:
        def stop(self, event):
            pass


class Deviations:
    def __init__(self):
        self.deviations = []
        self.rows = []

    def note(self, values, rows):
        largest = 0.0
        for value in values:
            largest = max(largest, value)
        self.deviations.append(largest)
        self.rows.append(rows)  # leak: written-never-read


class Workers:
    def __init__(self, make, number):
        self.queues = []
        self.number = number
        for _ in range(number):
            self.queues.append(make())

    def submit(self, turn, task):
        self.queues[turn % self.number].put(task)  # who made the queue reads it
