"""Near misses are unmarked."""

import torch


def average(paths):
    total = None
    for path in paths:
        weights = torch.load(path)["model"]  # leak: load-without-map-location
        checkpoint = torch.load(path)  # leak: load-without-map-location
        total = weights if total is None else checkpoint["state_dict"]
    return total


def on_the_host(model, path):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])


def data(path):
    record = torch.load(path)
    return record["image"]


def schedule(scheduler, scaler, path):
    scheduler.load_state_dict(torch.load(path))
    state = torch.load(path)
    scaler.load_state_dict(state)


class Keeper:
    def best_weights(self, path):
        return torch.load(path)  # leak: load-without-map-location

    def last_sample(self, path):
        return torch.load(path)

    def finish(self, model, path):
        best = self.best_weights(path)
        model.load_state_dict(best)
        return self.last_sample(path)
