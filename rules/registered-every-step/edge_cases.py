import atexit
import logging
import weakref

import torch
from torch import nn
from torch.nn.utils import parametrize

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = logging.getLogger("train")


def compiled_in_the_loop(loader, example):
    for x, y in loader:
        traced = torch.jit.trace(model, example)  # leak: registered-every-step
        loss = (traced(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()


def a_handler_each_step(loader):
    for x, y in loader:
        log.addHandler(logging.StreamHandler())  # leak: registered-every-step
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()


def called_at_exit(loader):
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        atexit.register(print, loss.item())  # leak: registered-every-step


def parametrized_again(loader, rule):
    for x, y in loader:
        parametrize.register_parametrization(model, "weight", rule)  # leak: registered-every-step
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()


def taken_back(loader, rule):
    for x, y in loader:
        parametrize.register_parametrization(model, "weight", rule)
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
        parametrize.remove_parametrizations(model, "weight")


def handler_of_each_step(loader):
    for x, y in loader:
        handler = logging.StreamHandler()
        log.addHandler(handler)
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
        log.removeHandler(handler)


def once_in_the_loop(loader, extra):
    for step, (x, y) in enumerate(loader):
        if step == 100:
            optimizer.add_param_group({"params": extra})
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()


def another_model_each_time(loader):
    for x, y in loader:
        learner = nn.Linear(4, 1)
        weakref.finalize(learner, print, "gone")
        own = torch.optim.SGD(learner.parameters(), lr=0.1)
        own.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
        (learner(x) - y).pow(2).mean().backward()
        own.step()


def one_compilation_an_epoch_of_steps(loader, epochs):
    for _epoch in range(epochs):
        fast = torch.compile(model)
        for x, y in loader:
            (fast(x) - y).pow(2).mean().backward()
            optimizer.step()


def groups_before_training(ranks):
    return [torch.distributed.new_group(each) for each in ranks]


def measured(sizes, steps):
    for size in sizes:
        layer = nn.Linear(size, size)
        fast = torch.compile(layer)

        def step(x):
            fast(x).sum().backward()

        for _step in range(steps):
            step(torch.randn(1, size))


def gradients_halved_again(loader):
    for x, y in loader:
        model.weight.register_hook(lambda grad: 0.5 * grad)  # leak: registered-every-step
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()


def each_parameter_again(loader):
    for x, y in loader:
        for parameter in model.parameters():
            parameter.register_hook(lambda grad: 0.5 * grad)  # leak: registered-every-step
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()


def a_hook_on_the_output_of_this_step(loader):
    for x, y in loader:
        guess = model(x)
        guess.register_hook(lambda grad: 0.5 * grad)
        (guess - y).pow(2).mean().backward()
        optimizer.step()


def hooks_taken_off_later(loader):
    handles = []
    for x, y in loader:
        handles.append(model.weight.register_hook(lambda grad: 0.5 * grad))
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
    for handle in handles:
        handle.remove()
