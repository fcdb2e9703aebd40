"""Meters that are modules, and meters that work on a list of theirs under another name."""

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)


class Error(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor(0.0))

    def update(self, output, target):
        self.total += (output - target).abs().sum()  # leak: undetached-meter

    def compute(self):
        return self.total


class CarefulError(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor(0.0))

    @torch.no_grad()
    def update(self, output, target):
        self.total += (output - target).abs().sum()


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(4)

    def observe(self, output):
        self.state = self.state + output

    def forward(self, x):
        made, self.state = self.state * x, torch.zeros(4)
        return made


class Slots:
    def __init__(self):
        self.state = {"samples": [], "bins": None}

    def update(self, output):
        samples = self.state["samples"]
        samples.append(output)  # leak: undetached-meter


class Renamed:
    def __init__(self):
        self.outputs = []

    def update(self, output):
        outputs = self.outputs
        outputs.append(output)  # leak: undetached-meter


class Copied:
    def __init__(self):
        self.outputs = []

    def update(self, output):
        outputs = list(self.outputs)
        outputs.append(output)
        return len(outputs)


class Emptied:
    def __init__(self):
        self.outputs = []

    def update(self, output):
        outputs = self.outputs
        outputs.append(output)
        print(torch.stack(outputs).mean().item())
        outputs.clear()


def train(loader):
    error, careful, state = Error(), CarefulError(), State()
    slots, renamed, copied, emptied = Slots(), Renamed(), Copied(), Emptied()
    for x, y in loader:
        output = model(x)
        loss = (output - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        error.update(output, y)
        careful.update(output, y)
        state.observe(output)
        slots.update(output)
        renamed.update(output)
        copied.update(output)
        emptied.update(output)
