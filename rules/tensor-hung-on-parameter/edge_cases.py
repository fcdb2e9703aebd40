"""Near misses are unmarked."""

import torch


def update(model, gradients):
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.update = -gradient  # leak: tensor-hung-on-parameter


@torch.no_grad()
def move(model, views):
    for parameter, view in zip(model.parameters(), views):
        parameter.place = view * 2  # without a graph, and one for each


def hang(model, gradients):
    gradients = [gradient.detach() for gradient in gradients]
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.sample = gradient  # without a graph


def hang_with_graph(model, gradients):
    gradients = [gradient * 2 for gradient in gradients]
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.doubled = gradient  # leak: tensor-hung-on-parameter
