import torch
from torch import nn

model = nn.Linear(4, 1)
criterion = nn.MSELoss()


def tasks_of_one_step(tasks):
    total = 0.0
    for x, y in tasks:
        total = total + criterion(model(x), y)
    total.backward()


def per_batch(loader):
    for batch in loader:
        total = 0.0
        for x, y in batch:
            total = total + criterion(model(x), y)
        total.backward()


def listed(train_loader):
    total = 0
    for i, (x, y) in enumerate(train_loader):
        total += criterion(model(x), y)  # leak: epoch-long-graph
    (total / len(train_loader)).backward()
