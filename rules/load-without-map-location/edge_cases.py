"""Near misses are unmarked."""

import io

import torch
from apex import amp


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


def on_the_cpu_if_there_is_no_other(model, path):
    place = None
    if not torch.cuda.is_available():
        place = torch.device("cpu")
    state = torch.load(path, map_location=place)  # leak: load-without-map-location
    model.load_state_dict(state)


def on_a_device_that_is_asked_for(model, path, rank):
    location = None
    if rank is not None:
        location = f"cuda:{rank}"
    model.load_state_dict(torch.load(path, map_location=location))


def by_a_function_of_its_own(modules, path):
    def restore(module, state):
        module.load_state_dict(state)

    checkpoint = torch.load(path)  # leak: load-without-map-location
    for name in modules:
        restore(modules[name], checkpoint[name])


def given_to_another(modules, path, inspect):
    tables = torch.load(path)
    for name in modules:
        inspect(modules[name], tables[name])


def asked_for_one_number(path):
    checkpoint = torch.load(path)  # leak: load-without-map-location
    return checkpoint["step"]


def asked_at_once(ckpt_path):
    return torch.load(ckpt_path)["step"]  # leak: load-without-map-location


def each_in_its_place(model, path):
    if torch.cuda.is_available():
        state = torch.load(path)
    else:
        state = torch.load(path, map_location="cpu")
    model.load_state_dict(state)


def each_of_another_kind(model, path, safe):
    if safe:
        state = torch.load(path, weights_only=True)  # leak: load-without-map-location
    else:
        state = torch.load(path)  # leak: load-without-map-location
    model.load_state_dict(state)


def each_from_its_file(model, path, pretrained):
    if pretrained:
        state = torch.load(path)  # leak: load-without-map-location
    else:
        state = torch.load(path.last, map_location="cpu")
    model.load_state_dict(state)


def resumed(lr_scheduler, model, checkpoint, checkpoint_path):
    state = torch.load(checkpoint)
    lr_scheduler.load_state_dict(state)
    weights = torch.load(checkpoint_path)  # leak: load-without-map-location
    model.load_state_dict(weights)


def settings_of_an_optimizer(optimizer, param_group_path, load):
    groups = torch.load(param_group_path)
    optimizer.load_state_dict({"state": load(), "param_groups": groups})


def seeds(rng_checkpoint, model_checkpoint):
    states = torch.load(rng_checkpoint)
    torch.set_rng_state(states["cpu"])
    return torch.load(model_checkpoint)  # leak: load-without-map-location


def where_it_is_told_or_the_model_is(model, path, place=None):
    device = place if place is not None else model.device
    model.load_state_dict(torch.load(path, map_location=device))


def where_nobody_says(model, path, place):
    device = None if place else "cpu"
    model.load_state_dict(torch.load(path, map_location=device))  # leak: load-without-map-location


def twice(model, checkpoint):
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    buffer.seek(0)
    checkpoint = torch.load(buffer)  # a copy of what is there anyway
    return checkpoint["model"]


def the_best_again(model, path, epochs):
    for epoch in range(epochs):
        if model.fit(epoch):
            torch.save(model.state_dict(), path)
    model.load_state_dict(torch.load(path))  # leak: load-without-map-location


def of_a_library(path, model):
    amp.load_state_dict(torch.load(path))  # its own few numbers
    model.load_state_dict(torch.load(path))  # leak: load-without-map-location


class Kept:
    def __init__(self, generator_checkpoint):
        self.generator = torch.load(generator_checkpoint)  # the model itself, which stays
        self.state = torch.load(generator_checkpoint)  # leak: load-without-map-location
