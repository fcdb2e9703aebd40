"""Near misses are unmarked."""

import torch


def update(model, gradients):
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.update = -gradient  # leak: tensor-hung-on-parameter


@torch.no_grad()
def move(model, views):
    for parameter, view in zip(model.parameters(), views):
        parameter.place = view * 2  # without a graph, and one for each
