"""Near misses are unmarked."""

import torch


class Restored:
    def __init__(self, path):
        self.checkpoint = torch.load(path, map_location="cpu")  # leak: checkpoint-kept
        self.model = self._make_model()
        self.scale = self._get_scale()

    def _make_model(self):
        model = torch.nn.Linear(8, 8)
        model.load_state_dict(self.checkpoint["model"])
        return model

    def _get_scale(self):
        return self.checkpoint["scale"]


class Samples:
    def __init__(self, path):
        self.samples = torch.load(path, map_location="cpu")  # read as long as it lives
        self.size = len(self.samples)

    def __getitem__(self, place):
        return self.samples[place]


class LetGo:
    def __init__(self, path):
        self.state = torch.load(path, map_location="cpu")
        self.config = self.state["config"]
        self.state = None


class HandedOn:
    def __init__(self, path, wrap):
        self.weights = torch.load(path, map_location="cpu")
        self.wrapped = wrap(self.weights)  # which keeps it, for all we know


class ReadLater:
    def __init__(self, path):
        self.loaded = torch.load(path, map_location="cpu")
        self.model = self.build()

    def build(self):  # others may call it
        model = torch.nn.Linear(8, 8)
        model.load_state_dict(self.loaded["model"])
        return model


def rebuild(reader):
    reader.model = reader.build()


def of_paths(model, optimizer, path, make_loader, epochs):
    shards = torch.load(path)  # a list of files
    loader = make_loader(shards)
    for _ in range(epochs):
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()


def of_weights(model, optimizer, path, loader, epochs):
    state = torch.load(path)  # leak: checkpoint-kept
    model.load_state_dict(state)
    for _ in range(epochs):
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()


def in_another_function(model, optimizer, path, loader, epochs):
    resumed = torch.load(path)  # leak: checkpoint-kept
    model.load_state_dict(resumed["model"])
    for epoch in range(epochs):
        one_epoch(epoch, model, optimizer, loader)


def let_go_of_before(model, optimizer, path, loader, epochs):
    resumed = torch.load(path)
    model.load_state_dict(resumed["model"])
    del resumed
    for epoch in range(epochs):
        one_epoch(epoch, model, optimizer, loader)


def only_looked_at(model, path, loader, epochs):
    best = torch.load(path)
    model.load_state_dict(best["model"])
    for epoch in range(epochs):
        print(epoch, looked_at(model, loader))


def one_epoch(epoch, model, optimizer, loader):
    for x in loader:
        loss = model(x).sum() + epoch
        loss.backward()
        optimizer.step()


@torch.no_grad()
def looked_at(model, loader):
    return sum(model(x).sum().item() for x in loader)
