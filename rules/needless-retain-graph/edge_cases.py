import torch
from torch import nn

model = nn.Linear(4, 1)
encoder = nn.Linear(4, 4)


def two_losses(loader):
    for x in loader:
        out = model(x)
        out.mean().backward(retain_graph=True)
        out.std().backward()


def shared_encoding(x, steps):
    code = encoder(x)
    for _ in range(steps):
        model(code).sum().backward(retain_graph=True)


def carried(loader):
    state = torch.zeros(4)
    for x in loader:
        state = encoder(x + state)
        state.sum().backward(retain_graph=True)


def alone(loader):
    for x in loader:
        model(x).sum().backward(retain_graph=True)  # leak: needless-retain-graph


def one_output_at_a_time(loader):
    for x in loader:
        outputs = model(x)
        for place in range(4):
            outputs.backward(torch.ones(4, 1), retain_graph=place < 3)


def each_output_again(loader, x):
    for output in model(x):
        for _ in range(4):
            output.backward(retain_graph=True)


def gradients_of_samples(posterior, inputs):
    samples, found = posterior.rsample([8]), []
    for k in range(8):
        torch.sum(samples[k]).backward(retain_graph=True)
        found.append(inputs.grad.clone())
        inputs.grad = None
    return found
