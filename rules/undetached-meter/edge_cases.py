from collections import deque

import torch
from ignite.metrics import Metric
from torch import nn

model = nn.Linear(4, 1)
criterion = nn.MSELoss()


class Careful:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total += value.item() if torch.is_tensor(value) else value


class Recorder:
    def __init__(self):
        self.values = []

    def push(self, value):
        self.values.append(value)  # leak: undetached-meter


class LossBuilder:
    def __init__(self):
        self.total = 0.0

    def add(self, value):
        self.total = self.total + value

    def backward(self):
        self.total.backward()
        self.total = 0.0


def train(loader):
    careful, recorder, builder = Careful(), Recorder(), LossBuilder()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        careful.update(loss)
        recorder.push(loss)
        builder.add(criterion(model(x), y))
        builder.backward()


class Table:
    def __init__(self):
        self.table = {}

    def __setitem__(self, key, value):
        self.table.setdefault(key, []).append(value)  # leak: undetached-meter


class Window:
    def __init__(self):
        self.values = deque(maxlen=20)

    def update(self, value):
        self.values.append(value)


def log(loader):
    table, window = Table(), Window()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        table["loss"] = loss
        window.update(loss)


class Saver:
    def __init__(self, output_transform):
        self.output_transform = output_transform
        self.outputs = []
        self.detached = []

    def __call__(self, engine):
        self.outputs.append(self.output_transform(engine.state.output))  # leak: undetached-meter
        self.detached.append(self.output_transform(engine.state.output).detach())
        self.last = engine.state.output


class Fold(Metric):
    def __init__(self, op):
        self.op = op
        self.total = torch.tensor(0.0)

    def update(self, output):
        self.total = self.op(self.total, output)  # leak: undetached-meter


class CarefulFold(Metric):
    def __init__(self, op):
        self.op = op
        self.total = torch.tensor(0.0)

    def update(self, output):
        self.total = self.op(self.total, output.detach())


class Registry:
    def __init__(self, net):
        self.by_id = {}
        self.penalties = []
        self.names = set()
        self.register(list(net.parameters()))
        self.penalize(net.parameters())

    def register(self, parameters):
        for each in parameters:
            self.by_id[id(each)] = each  # a parameter has no past

    def penalize(self, parameters):
        for each in parameters:
            self.penalties.append(each.pow(2))  # leak: undetached-meter

    def note(self, losses):
        for name, loss in losses.items():
            self.names.add(name)  # the name, not the loss


def train_with(registry, loader):
    for x, y in loader:
        loss = criterion(model(x), y)
        registry.note({"loss": loss})
        loss.backward()


class States:
    def __init__(self):
        self.beliefs = []

    def append(self, belief):
        self.beliefs.append(belief)  # leak: undetached-meter

    def stacked(self):
        return torch.stack(self.beliefs, dim=1)


class Unrolled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 4)
        self.states = States()

    def forward(self, x):
        for t in range(x.shape[1]):
            h = self.cell(x[:, t])
            self.states.append(h)  # what `append` keeps outlives the pass
        return self.states.stacked()


class Steps:
    def __init__(self):
        self.beliefs = []

    def append(self, belief):
        self.beliefs.append(belief)

    def stacked(self):
        return torch.stack(self.beliefs, dim=1)


class UnrolledAnew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 4)

    def forward(self, x):
        steps = Steps()  # ends with the pass
        for t in range(x.shape[1]):
            h = self.cell(x[:, t])
            steps.append(h)
        return steps.stacked()


class OfVariables:
    """Every tensor is a Variable, so that the second branch is that of no tensor with a graph."""

    def __init__(self):
        self.total, self.count = 0, 0

    def add(self, value):
        if isinstance(value, torch.autograd.Variable):
            value = value.data.sum()
        elif isinstance(value, torch.Tensor):
            value = value.sum()
        self.total += value
        self.count += 1


class OfParameters:
    def __init__(self):
        self.total = 0

    def add(self, value):
        if isinstance(value, nn.Parameter):
            value = value.data.sum()
        elif isinstance(value, torch.Tensor):
            value = value.sum()
        self.total += value  # leak: undetached-meter


def fed_with_losses(loader, optimizer):
    of_variables, of_parameters = OfVariables(), OfParameters()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        of_variables.add(loss)
        of_parameters.add(loss)
