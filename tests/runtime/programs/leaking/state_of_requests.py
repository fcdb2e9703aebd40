"""A service that learns from its requests, and keeps a state of each by the request's number."""

# kind = "tensor"
# holder = "attribute `Sessions.state`"
# per_step = 1

import dataclasses

import torch
from torch import nn

torch.manual_seed(0)


@dataclasses.dataclass
class Request:
    number: int
    tokens: torch.Tensor


class Sessions:
    def __init__(self):
        self.state = {}

    def note(self, request, output):
        self.state[request.number] = output  # leak


def main():
    model, sessions = nn.Linear(16, 16), Sessions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(800):
        request = Request(number, torch.randn(4, 16))
        output = model(request.tokens)
        optimizer.zero_grad()
        output.square().mean().backward()
        optimizer.step()
        sessions.note(request, output.detach())


main()
