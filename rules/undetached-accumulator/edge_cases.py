import torch
from torch import nn

model = nn.Linear(4, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def sums_before_backward(tasks):
    for batch in tasks:
        total = 0.0
        for x, y in batch:
            total += criterion(model(x), y)
        total.backward()
        optimizer.step()


def rebound(loader):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        loss = loss.detach()
        total += loss
    return total


def guarded(loader):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        if isinstance(loss, torch.Tensor):
            loss = loss.item()
        total += loss
    return total


def in_a_slot(loader):
    stats = {"loss": 0.0}
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        stats["loss"] += loss  # leak: undetached-accumulator
    return stats


def spelled_out(loader):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total = total + loss / len(x)  # leak: undetached-accumulator
    return total


def moving_average(loader):
    average = None
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        if average is None:
            average = loss
        else:
            average = 0.9 * average + 0.1 * loss  # leak: undetached-accumulator
    return average


def several(loader):
    total, count = 0.0, 0
    for x, y in loader:
        if (loss := criterion(model(x), y)).requires_grad:
            loss.backward()
        total, count = total, count + 1
        total += loss if count > 3 else 0.0  # leak: undetached-accumulator
    return total


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.running = 0.0

    def step(self, x, y):
        loss = criterion(self.model(x), y)
        loss.backward()
        self.running += loss  # leak: undetached-accumulator


def without_gradient(loader):
    total = 0.0
    for x, y in loader:
        with torch.no_grad():
            loss = criterion(model(x), y)
        total += loss
    return total


def averages_of_parameters(loader):
    avg = [parameter.clone() for parameter in model.parameters()]
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        avg = [s + p for s, p in zip(avg, model.parameters())]  # leak: undetached-accumulator
    return [s.detach() for s in avg]


def averages_by_name(loader):
    avg = dict(model.named_parameters())
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        avg = {k: avg[k] + p for k, p in model.named_parameters()}  # leak: undetached-accumulator
    print(len(avg))


def averages_of_data(loader):
    shadow = [parameter.detach().clone() for parameter in model.parameters()]
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        shadow = [0.9 * s + 0.1 * p.detach() for s, p in zip(shadow, model.parameters())]
    return shadow


def fast_weights(loader):
    for x, y in loader:
        weights = list(model.parameters())
        for _ in range(3):
            inner = (x @ weights[0].T + weights[1] - y).pow(2).mean()
            found = torch.autograd.grad(inner, weights, create_graph=True)
            weights = [w - 0.1 * g for w, g in zip(weights, found)]
        optimizer.zero_grad()
        (x @ weights[0].T + weights[1] - y).pow(2).mean().backward()
        optimizer.step()


def only_the_newest(loader):
    pending = []
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        pending = [(at, old) for at, old in [*pending, (step, loss.detach())] if step - at < 5]
    return pending


class Summed(nn.Module):
    def __init__(self):
        super().__init__()
        self.bare, self.whole = torch.zeros(1), torch.zeros(1)

    def fit(self, loader):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            self.bare.data.add_(loss)
            self.bare.data += loss
            self.whole.add_(loss)  # leak: undetached-accumulator


def add_to(total, value):
    total.add_(value)


def mean_by_helper(model, loader, optimizer):
    total, detached = torch.zeros(1), torch.zeros(1)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        add_to(total, loss)  # leak: undetached-accumulator
        add_to(detached, loss.detach())
    return total / len(loader), detached / len(loader)


class InParts:
    """What divides a loss is a number, whoever gives it."""

    def __init__(self, options):
        self.options = options
        self.turn, self.scaled = 0, 0.0

    def backward(self, loss):
        parts = self.options.get("parts", 1)
        self.turn = (self.turn + 1) % parts
        loss = loss / parts
        self.scaled = self.scaled + loss  # leak: undetached-accumulator
        loss.backward()

    def step(self, batch, labels):
        self.backward(criterion(model(batch), labels))
        optimizer.step()
        optimizer.zero_grad()
