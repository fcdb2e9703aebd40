"""Near misses are unmarked."""

import weakref
from functools import partial, wraps

import torch


def scaled(model, x):
    return model(x) * 2


def scaled_weakly(kind, me, training, x):
    return me()(x) * 2


def extend(model, parser):
    model.plain = lambda x: x.relu()
    model.double = partial(scaled, model)  # leak: closure-kept-by-module
    model.free = lambda model, x: model(x)
    parser.error = lambda text: print(parser.prog, text)

    def fast(x):
        return model(x.half())

    model.fast = fast  # leak: closure-kept-by-module

    def given(model, x):
        return model(x)

    model.given = given


def extend_weakly(model):
    me = weakref.ref(model)
    model.fast = lambda x: me()(x.half())
    model.double = partial(scaled_weakly, type(model), weakref.ref(model), model.training)

    def alone(x):
        model = me()
        return model(x)

    model.alone = alone


def wrap_saving(model):
    def saving(save):
        @wraps(save)
        def wrapper(folder):
            return save(folder), model.state_dict()

        return wrapper

    def naming(save):
        @wraps(save)
        def wrapper(folder):
            return save(f"{folder}/model")

        return wrapper

    model.save_pretrained = saving(model.save_pretrained)  # leak: closure-kept-by-module
    model.save = naming(model.save)


def cached(model, batches):
    forward_iter = model.forward_iter
    model.forward_iter = lambda: iter(model(batch) for batch in batches)
    try:
        return list(model.forward_iter())
    finally:
        model.forward_iter = forward_iter


def at_rest(model):
    total = torch.zeros(1)
    model.total = lambda: total


class Solver:
    def __init__(self, model):
        self.model = model


def solved(model, noise, callback):
    solver = Solver(model)
    solver.on_step = lambda at: callback(solver.sigma(at))  # leak: closure-kept-by-module
    return solver.run(noise)


def solved_alone(model, noise, callback):
    solver = Solver(model)
    solver.on_step = lambda at: callback(at)
    return solver.run(noise)


def given(solver, callback):
    solver.on_step = lambda at: callback(solver.sigma(at))
