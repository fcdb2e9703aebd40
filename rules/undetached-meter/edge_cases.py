import torch
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
