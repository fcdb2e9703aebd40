"""A service that learns from its requests, and keeps the last state of each of its users."""

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
        self.state[request.number] = output

def main():
    model, sessions = nn.Linear(16, 16), Sessions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(1400):
        request = Request(number * 7 % 120, torch.randn(4, 16))
        output = model(request.tokens)
        optimizer.zero_grad()
        output.square().mean().backward()
        optimizer.step()
        sessions.note(request, output.detach())

main()
