"""The update is a local, gone when it has been applied."""

import torch
from torch import nn

STEPS = 400


def adapt(parameters, loss):
    gradients = torch.autograd.grad(loss, parameters)
    updates = [-0.001 * gradient for gradient in gradients]
    return [
        (parameter.detach() + update).requires_grad_()
        for parameter, update in zip(parameters, updates)
    ]


def main():
    layers = [nn.Linear(64, 64) for _ in range(STEPS)]
    for step in range(STEPS):
        layer = layers[step]
        adapt(list(layer.parameters()), layer(torch.ones(4, 64)).sum())
    print("done")


if __name__ == "__main__":
    main()
