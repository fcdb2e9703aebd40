"""Each clone's parameters keep the update they were made from, back to the first clone."""

import torch
from torch import nn

STEPS = 400


def adapt(parameters, loss):
    gradients = torch.autograd.grad(loss, parameters)
    for parameter, gradient in zip(parameters, gradients):
        parameter.update = -0.001 * gradient  # leak: tensor-hung-on-parameter
    return [(parameter.detach() + parameter.update).requires_grad_() for parameter in parameters]


def main():
    layers = [nn.Linear(64, 64) for _ in range(STEPS)]
    for step in range(STEPS):
        layer = layers[step]
        adapt(list(layer.parameters()), layer(torch.ones(4, 64)).sum())
    print("done")


if __name__ == "__main__":
    main()
