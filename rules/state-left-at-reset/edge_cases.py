"""Near misses are unmarked."""

import torch


class Tracker:
    def __init__(self):
        self.losses = {}
        self.outputs = {}
        self.layers = {}
        self.kinds = []
        self.total = []

    def update(self, sample_id, layer, kind, output):
        self.losses[sample_id] = output.mean().item()
        self.outputs[sample_id] = output.cpu()  # leak: state-left-at-reset
        self.layers[layer] = output.shape
        if kind not in self.kinds:
            self.kinds.append(kind)

    def summary(self, sample_id):
        return self.losses[sample_id], self.outputs[sample_id], self.layers, self.kinds

    def log(self, value):
        self.total.append(value)

    def clear(self):
        self.losses.clear()

    def mean(self):
        return torch.stack(self.total).mean()


class EmptiesBoth:
    def __init__(self):
        self.rewards = []
        self.values = []

    def step(self, reward, value):
        self.rewards.append(reward)
        self.values.append(value)

    def last(self):
        return self.values[-1]

    def reset(self):
        self.rewards.clear()
        self.values.clear()


class Handed:
    def __init__(self):
        self.marks = []
        self.points = []

    def step(self, mark, point):
        self.marks.append(mark)
        self.points.append(point)

    def everything(self):
        return self.points

    def reset(self):
        self.marks = []


class BeginsToRecord:
    """A method that switches something on ends nothing."""

    def __init__(self):
        self.pages = []
        self.phases = []

    def take(self, page, phase):
        self.pages.append(page)
        self.phases.append(phase)

    def timeline(self):
        return [phase.name for phase in self.phases]

    def begin_pages(self):
        self.pages.clear()


class World:
    def __init__(self, space):
        self.space = space
        self.handlers = []
        self.bodies = []
        self.returns = []
        self.total = 0.0

    def reset(self):
        self.returns.append(self.total)
        self._place()
        self._listen()
        self.total = 0.0

    def _place(self):
        self.bodies = []
        self.bodies.append(self.space.body())

    def _listen(self):
        self.handlers.append(self.space.handler())  # leak: state-left-at-reset
        self.handlers[-1].begin = self._place

    def step(self, action):
        self.total += float(action)
        return len(self.returns)


class Listening:
    def __init__(self, space):
        self.space = space
        self.handlers = []

    def reset(self):
        self.handlers.append(self.space.handler())


class Workers:
    def __init__(self):
        self.asked, self.queues = [], []

    def ask(self, k, batch):
        self.asked.append(k)
        self.queues[k].put(batch)

    def reset(self):
        self.asked = []


class Records:
    def __init__(self):
        self.records, self.places, self.names = [], {}, []

    def record(self, name, value):
        self.places[name].append(len(value))
        self.records.append(value)
        self.names.append(name)  # leak: state-left-at-reset

    def clear(self):
        self.records.clear()
        for place in self.places.values():
            place.clear()
